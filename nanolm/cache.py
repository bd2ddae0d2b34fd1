"""The key/value cache of generation, given: the exercise is to use it right.

The model makes one `Cache` for all layers and hands each attention its layer's own. Keys are
stored after RoPE (a key never moves, so it is turned once), K heads of them, not N.
"""

import torch


class LayerCache:
    """Keys and values that one layer has seen. Ask `cache is not None`, never `if cache`."""

    def __init__(self, window=None):
        self.window = window
        self.length = 0  # tokens seen, also those that the window has dropped
        self.k = None  # (B, K, S, H)
        self.v = None  # (B, K, S, H)

    def append(self, k, v):
        """New rotated keys and values (B, K, T, H) in; all that the T queries may need out.

        Returns k, v of (B, K, S, H). Without a window S counts every token so far; with a window
        w these are the last w - 1 + T, as the oldest of the T queries sees w - 1 before itself.
        """
        T = k.shape[-2]
        if self.k is not None:
            k = torch.cat((self.k, k), dim=-2)
            v = torch.cat((self.v, v), dim=-2)
        if self.window is not None:
            k = k[..., -(self.window - 1 + T) :, :]
            v = v[..., -(self.window - 1 + T) :, :]
        self.k, self.v = k, v
        self.length += T
        return k, v

    @property
    def nbytes(self):
        """Bytes that the next step needs of this layer."""
        if self.k is None:
            return 0
        keep = self.k.shape[-2] if self.window is None else min(self.k.shape[-2], self.window - 1)
        B, K, _, H = self.k.shape
        return 2 * B * K * keep * H * self.k.element_size()


class Cache:
    """The caches of all L layers."""

    def __init__(self, cfg):
        self.layers = [LayerCache(cfg.window_of(layer)) for layer in range(cfg.L)]

    def __getitem__(self, layer):
        return self.layers[layer]

    @property
    def length(self):
        """Tokens that every layer has seen. An attention that never appends leaves it at 0."""
        return min(layer.length for layer in self.layers)
