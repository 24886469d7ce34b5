"""Export of trained or published weights to model folders: ONNX graphs, quantised, fitted and verified."""
