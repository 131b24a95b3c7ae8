"""The architectures by llama.cpp's name, each the reverse of its class in llama.cpp's ``conversion`` folder."""

from __future__ import annotations

from collections.abc import Mapping

from lm_audit.models.files.gguf.header import GgufHeader
from lm_audit.models.files.gguf.recipes.deepseek import DEEPSEEK
from lm_audit.models.files.gguf.recipes.gpt_oss import GPT_OSS
from lm_audit.models.files.gguf.recipes.granite import GRANITE, GRANITE_MOE
from lm_audit.models.files.gguf.recipes.lfm2_moe import LFM2_MOE
from lm_audit.models.files.gguf.recipes.mixture import (
    DOTS,
    ERNIE_MOE,
    GLM_MOE,
    HUNYUAN_MOE,
    MIXTRAL,
    OLMO_MOE,
    QWEN2_MOE,
)
from lm_audit.models.files.gguf.recipes.plain import (
    APERTUS,
    ARCEE,
    COHERE,
    COHERE2,
    ERNIE,
    EXAONE4,
    GEMMA,
    GLM4,
    HUNYUAN,
    OLMO,
    OLMO2,
    SEED_OSS,
    SMOLLM3,
)
from lm_audit.models.files.gguf.recipes.recipe import Recipe

_RECIPES: Mapping[str, Recipe] = {
    "apertus": APERTUS,
    "arcee": ARCEE,
    "cohere2": COHERE2,
    "command-r": COHERE,
    "deepseek2": DEEPSEEK,
    "dots1": DOTS,
    "ernie4_5": ERNIE,
    "ernie4_5-moe": ERNIE_MOE,
    "exaone4": EXAONE4,
    "gemma": GEMMA,
    "glm4": GLM4,
    "glm4moe": GLM_MOE,
    "gpt-oss": GPT_OSS,
    "granite": GRANITE,
    "granitemoe": GRANITE_MOE,
    "hunyuan-dense": HUNYUAN,
    "hunyuan-moe": HUNYUAN_MOE,
    "lfm2moe": LFM2_MOE,
    "olmo": OLMO,
    "olmo2": OLMO2,
    "olmoe": OLMO_MOE,
    "qwen2moe": QWEN2_MOE,
    "seed_oss": SEED_OSS,
    "smollm3": SMOLLM3,
}


def recipe_of(header: GgufHeader) -> Recipe | None:
    """The recipe for the file's architecture; ``None`` where it is left to transformers, or unknown to both."""
    if header.architecture == "llama" and header.of_model("expert_count"):
        return MIXTRAL
    return _RECIPES.get(header.architecture)
