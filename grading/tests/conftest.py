"""The course team's tests: on one thread, as threads would only wait for each other on tiny tensors."""

import torch

import grading  # noqa: F401  puts tests/ on the path

torch.set_num_threads(1)
