"""Questions to the whole language model: your parts, put together by nanolm/model/language_model.py.

B batch, T query length, V vocabulary. The stored answers stand for Hugging Face's Llama, against
which the course team has checked them.
"""

import pytest
import torch

from machinery import expect
from machinery.draw import Draw, model_shapes, tiny
from machinery.kinds import MODES
from machinery.stored import stored

PARTS_FIRST = "Which part's tests are red? Start there: this test only adds the parts up."


def stored_model(student, name):
    cfg, answer = tiny(tie_embeddings=name == "tied"), stored("logits")
    model = student.LanguageModel(cfg).load({key: answer[f"{name}.{key}"] for key in model_shapes(cfg)})
    return answer, model


@pytest.mark.points(3)
@pytest.mark.needs("rope")
def test_logits_match_stored_answers(student):
    answer, model = stored_model(student, "untied")
    logits = model(answer["untied.tokens"])
    expect.close(logits, answer["untied.logits"], 1e-2, "the logits differ from the stored answer", PARTS_FIRST)


@pytest.mark.points(1)
@pytest.mark.needs("rope")
def test_logits_match_stored_answers_when_tied(student):
    answer, model = stored_model(student, "tied")
    logits = model(answer["tied.tokens"])
    expect.close(logits, answer["tied.logits"], 1e-2, "the tied model's logits differ", PARTS_FIRST)


@pytest.mark.points(1)
@pytest.mark.needs("rope", "cache")  # it writes with a cache where the attention uses one
def test_logits_choose_the_stored_tokens(student):
    for name in ("untied", "tied"):
        answer, model = stored_model(student, name)
        got = model.greedy(answer[f"{name}.tokens"][0], 8)
        symptom = f"the {name} model writes other tokens"
        expect.same(got, answer[f"{name}.greedy"].tolist(), symptom, PARTS_FIRST)


@pytest.mark.points(0)
@pytest.mark.needs("rope")
def test_logits_survive_bfloat16(student):
    answer, model = stored_model(student, "untied")
    tokens = answer["untied.tokens"]
    logits = model.bfloat16()(tokens)
    expect.tensor(logits, (2, 9, 61), "the logits of a bf16 model", torch.bfloat16)
    off = (logits.double() - answer["untied.logits"]).norm() / answer["untied.logits"].norm()
    cause = "Do angles and norms stay in fp32 when the model is cast?"
    expect.close(off, 0.0, 0.2, "a bf16 model's logits are far from the fp32 ones", cause)


@pytest.mark.points(0)
@pytest.mark.needs("rope")
def test_logits_survive_double(student):
    answer, model = stored_model(student, "untied")
    logits = model.double()(answer["untied.tokens"])
    expect.tensor(logits, (2, 9, 61), "the logits of a fp64 model", torch.float64)
    expect.close(logits, answer["untied.logits"], 1e-3, "a fp64 model's logits are far off", PARTS_FIRST)


@pytest.mark.points(0)
@pytest.mark.needs("rope")
def test_logits_survive_a_copy_and_a_step(student):
    answer, model = stored_model(student, "untied")
    tokens = answer["untied.tokens"]
    twin = model.copy()
    before = model(tokens)
    model.step(tokens, upstream=Draw(95).normal(2, 9, 61, std=0.01), rate=0.01)
    expect.close(twin(tokens), before, 1e-4, "training a model changed its copy", "Do two modules share a tensor?")
    cause = "Are the weights used that are trained?"
    expect.differ(model(tokens), before, 1e-4, "a training step changes nothing", cause)


@pytest.mark.points(0)
@pytest.mark.needs("rope")
def test_logits_are_the_same_in_training(student):
    answer, model = stored_model(student, "untied")
    outcome = model.run(answer["untied.tokens"], upstream=Draw(371).normal(2, 9, 61), training=True)
    logits = outcome.output
    expect.close(logits, answer["untied.logits"], 1e-2, "in training the logits are others than in evaluation", MODES)
    for name in model_shapes(tiny()):
        grad = outcome.grads.get(name)
        reaches = grad is not None and bool(grad.abs().sum() > 0)
        expect.that(reaches, f"no gradient of the logits reaches {name}", "Which part keeps it from going on?")
