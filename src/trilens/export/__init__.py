"""Model folders from trained or published weights: an ONNX graph written layer by layer, rounded, fitted and checked."""
