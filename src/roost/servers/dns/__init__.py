"""Discovery as DNS, for programs that can ask nothing else."""
