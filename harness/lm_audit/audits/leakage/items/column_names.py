"""What the columns of multiple-choice sets are called: the question, its options, which of them is right."""

from __future__ import annotations

QUESTIONS = (
    "question", "question_stem", "query", "prompt", "stem", "input", "ctx", "goal", "sentence", "question_text",
    "problem", "题目", "问题", "题干", "qtext", "inputs", "startphrase", "instruction", "sent1", "soal", "statement",
    "question_body",
)  # fmt: skip
CONTEXTS = ("context", "passage", "article", "premise", "dialogue", "flores_passage", "材料")
"""What is read before the question: without it, questions such as "What follows?" ask nothing."""
BEGINNINGS = ("context", "premise", "dialogue")
"""What its endings or replies go on from: the question, where no other column is one."""
OPTION_LISTS = (
    "options", "choices", "endings", "candidates", "mc1_targets", "answer_choices", "answer_options",
    "possible_answers", "选项", "jawaban", "target_scores", "multiple_choice_targets",
    "option_list", "option",
)  # fmt: skip
OPTION_LISTS_BESIDE_A_KEY = ("choice", "answers")
"""Columns that hold options only where another one says which is right: ``answers`` may be all right answers."""
OPTION_FORMS = (
    "{}", "option_{}", "option {}", "option{}", "choice_{}", "choice {}", "choice{}", "ans{}", "answer_{}", "answer{}",
    "mc_answer{}", "ending{}", "ending_{}", "sol{}", "op{}", "选项{}", "alternative_{}", "sentence_quiz{}",
    "randomfifthsentencequiz{}",
)  # fmt: skip
OPTION_FORMS_WITHOUT_A_LIST = ("solution{}",)
"""Names that mean options only where no list of them stands beside."""
ANSWERS = (
    "answer", "answers", "answerkey", "answer_key", "label", "target", "correct", "correct_answer", "correct_option",
    "answer_idx", "answer_index", "correct_answer_num", "gold", "gold_label", "cop",
    "gold_answer", "gold_index", "gold_idx", "correct_index", "correct_idx", "correct_answer_index", "correct_choice",
    "right_answer", "answer_letter", "kunci", "答案", "正确答案", "标准答案", "参考答案",
)  # fmt: skip
ANSWERS_IF_READABLE = (
    "answer_text", "answer_choice", "answer_id", "answer_label", "correct_answer_id", "correct_answer_text",
    "correct_option_text", "correct_letter", "correct_label", "gold_text", "gold_choice", "targets", "ground_truth",
    "groundtruth", "answer_right_ending", "answerrightending", "ra", "key",
)  # fmt: skip
"""Names under which sets keep other things too: these are answers where their values are."""
RIGHTS = ("correct_answer", "best_answer", "right_answer", "correct_option", "correct", "answer")
WRONG_FORMS = (
    "incorrect_answer_{}", "incorrect_answer{}", "wrong_answer_{}", "wrong_answer{}", "distractor{}", "distractor_{}",
    "incorrect_{}", "wrong_{}", "false_answer_{}", "incorrect_option_{}", "wrong_option_{}",
)  # fmt: skip
WRONG_LISTS = (
    "best_incorrect_answer", "incorrect_answers", "wrong_answers", "distractors", "false_answers", "incorrect_options",
    "incorrect_answer", "wrong_answer", "distractor",
)  # fmt: skip
"""Where no column holds the options: one that holds the right text, beside those of the wrong ones or their list."""
IDS = ("id", "item_id", "question_id", "uid", "编号")
