"""Reading batches: positions, buffers and one fetch loop per broker."""
