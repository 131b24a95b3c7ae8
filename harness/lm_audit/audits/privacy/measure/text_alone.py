"""Can two groups of texts be told apart without any model? If so, a membership score may read the same difference.

Members and "held-out" texts that differ in topic or date are told apart by their words (Das, Zhang and Tramer 2024,
"Blind baselines beat membership inference attacks for foundation models").
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

FOLDS = 5


def text_alone(texts: Sequence[str], member: Sequence[bool], *, seed: int = 0) -> NDArray[np.float64]:
    """Of each text, how member-like a classifier finds it that was trained on the others; no unit.

    Logistic regression on TF-IDF of character 1- to 3-grams, in folds (as many as the smaller group has texts, at most
    5) of both groups. At least two texts a group.
    """
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import StratifiedKFold, cross_val_predict
    from sklearn.pipeline import make_pipeline

    labels = np.asarray(member, dtype=np.int64)
    folds = StratifiedKFold(min(FOLDS, int(np.bincount(labels, minlength=2).min())), shuffle=True, random_state=seed)
    classifier = make_pipeline(
        TfidfVectorizer(analyzer="char", ngram_range=(1, 3), sublinear_tf=True),
        LogisticRegression(max_iter=1000, class_weight="balanced"),
    )
    found = cross_val_predict(classifier, list(texts), labels, cv=folds, method="decision_function")
    return np.asarray(found, dtype=np.float64)
