"""Emptying servers while their users play: jobs, their pace, and the proof that nothing was lost."""
