"""The configuration of a language model, in the course notation, and the presets.

Notation
    L layers            V vocabulary      D width            F FFN width (= ffn_dim)
    N query heads       H head size       K key/value heads  G = N / K query heads per key/value head
    B batch, T query length, S key length: these belong to a batch, so they are read off tensors.
"""

from dataclasses import dataclass, replace

CHOICES = {
    "norm": ("rmsnorm", "layernorm"),
    "norm_position": ("pre", "post", "sandwich"),
    "positions": ("rope", "learned"),
    "ffn": ("swiglu", "geglu", "gelu"),
}


@dataclass(frozen=True)
class ModelConfig:
    """One language model. Frozen: to change a field, take a copy with `cfg.but(K=2)`.

    Left out, K is N (no sharing) and H is D / N. An impossible configuration is a ValueError
    whose sentence holds the numbers.
    """

    L: int
    V: int
    D: int
    N: int
    ffn_dim: int
    K: int | None = None
    H: int | None = None
    T_max: int = 2048
    tie_embeddings: bool = False
    norm: str = "rmsnorm"
    norm_eps: float = 1e-5
    norm_position: str = "pre"
    positions: str = "rope"
    rope_theta: float = 10_000.0
    ffn: str = "swiglu"
    bias: bool = False  # on attention, the GELU FFN and LayerNorm; RMSNorm and gated FFNs have none
    qk_norm: bool = False
    attn_softcap: float | None = None
    final_softcap: float | None = None
    windows: int | tuple[int | None, ...] | None = None  # of all layers, or one entry a layer
    embed_scale: float = 1.0  # Gemma multiplies the embedding by sqrt(D)

    def __post_init__(self):
        for name in ("L", "V", "D", "N", "ffn_dim", "T_max"):
            _require_positive_int(name, getattr(self, name))
        if self.K is None:
            object.__setattr__(self, "K", self.N)
        if self.H is None:
            if self.D % self.N:
                raise ValueError(
                    f"D = {self.D} can't be split into N = {self.N} heads of equal size: "
                    f"choose an N that divides D, or give H yourself."
                )
            object.__setattr__(self, "H", self.D // self.N)
        for name in ("K", "H"):
            _require_positive_int(name, getattr(self, name))
        if self.N % self.K:
            raise ValueError(
                f"N = {self.N} query heads can't share K = {self.K} key/value heads evenly: K must divide N."
            )
        if self.H % 2:
            raise ValueError(f"H = {self.H} is odd, but RoPE turns pairs: choose an even head size.")
        for name, allowed in CHOICES.items():
            if getattr(self, name) not in allowed:
                raise ValueError(f"{name} = {getattr(self, name)!r} is not known: choose one of {', '.join(allowed)}.")
        for name in ("norm_eps", "rope_theta", "embed_scale"):
            if not getattr(self, name) > 0:
                raise ValueError(f"{name} = {getattr(self, name)} must be greater than 0.")
        for name in ("attn_softcap", "final_softcap"):
            cap = getattr(self, name)
            if cap is not None and not cap > 0:
                raise ValueError(f"{name} = {cap} must be greater than 0, or None for no cap.")
        if isinstance(self.windows, (list, tuple)):
            object.__setattr__(self, "windows", tuple(self.windows))
            if len(self.windows) != self.L:
                raise ValueError(
                    f"windows has {len(self.windows)} entries for L = {self.L} layers: give one entry a layer."
                )
        for layer in range(self.L):
            if self.window_of(layer) is not None:
                _require_positive_int("a window", self.window_of(layer))

    @property
    def F(self):
        """FFN width, the notation's name for ffn_dim."""
        return self.ffn_dim

    @property
    def G(self):
        """Query heads that share one key/value head."""
        return self.N // self.K

    def window_of(self, layer):
        """The window of one layer: how many tokens each token sees, itself included; None for all."""
        return self.windows[layer] if isinstance(self.windows, tuple) else self.windows

    def but(self, **changes):
        """A copy with some fields changed. H stays as it is: give H too where D or N changes it."""
        return replace(self, **changes)

    def __getattr__(self, name):  # reached only where no field or property has that name
        if name in ("B", "T", "S"):
            raise AttributeError(f"{name} belongs to a batch, not to a configuration: read it off the tensor's shape.")
        raise AttributeError(f"ModelConfig has no field {name!r}.")


def _require_positive_int(name, value):
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise ValueError(f"{name} = {value!r} must be a whole number of at least 1.")


PRESETS = {
    # For tests: every size differs, G > 1, H is not D / N, eps and theta are not the defaults.
    "tiny": ModelConfig(L=2, V=61, D=36, N=6, K=2, H=8, ffn_dim=40, T_max=64, norm_eps=1e-3, rope_theta=500.0),
    "gpt2-small": ModelConfig(
        L=12, V=50_257, D=768, N=12, ffn_dim=3_072, T_max=1_024, tie_embeddings=True,
        norm="layernorm", positions="learned", ffn="gelu", bias=True,
    ),
    "llama2-7b": ModelConfig(L=32, V=32_000, D=4_096, N=32, ffn_dim=11_008, T_max=4_096),
    "llama3-8b": ModelConfig(
        L=32, V=128_256, D=4_096, N=32, K=8, ffn_dim=14_336, T_max=8_192, rope_theta=500_000.0,
    ),
    "smollm2-135m": ModelConfig(
        L=30, V=49_152, D=576, N=9, K=3, ffn_dim=1_536, T_max=8_192, rope_theta=100_000.0, tie_embeddings=True,
    ),
    "mistral-7b": ModelConfig(L=32, V=32_000, D=4_096, N=32, K=8, ffn_dim=14_336, T_max=32_768, windows=4_096),
    "gemma2-2b": ModelConfig(
        L=26, V=256_000, D=2_304, N=8, K=4, H=256, ffn_dim=9_216, T_max=8_192, tie_embeddings=True,
        norm_eps=1e-6, norm_position="sandwich", ffn="geglu", attn_softcap=50.0, final_softcap=30.0,
        windows=(4_096, None) * 13, embed_scale=2_304**0.5,
    ),
}  # fmt: skip


def preset(name):
    """One of PRESETS by name; an unknown name is a ValueError that lists them."""
    if name not in PRESETS:
        raise ValueError(f"There is no preset {name!r}: choose one of {', '.join(PRESETS)}.")
    return PRESETS[name]
