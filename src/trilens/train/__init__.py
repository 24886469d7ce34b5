"""Training: heads over a shared backbone, their losses, and what several processes need. The only package that uses torch."""
