"""Conformance vectors: what TensorFlow 1.15 computes, stored for tests/ops/vectors_test.c."""
