"""The course team's tests run on one thread: their tensors are tiny, and threads would only wait for each other."""

import torch

torch.set_num_threads(1)
