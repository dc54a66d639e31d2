"""The questions a visitor may come with, and the page that answers each."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Door:
    """A way in: the question, what the page shows, and where it is."""

    question: str
    answer: str
    label: str
    page: str
    icon: str


#: The page of settings of a kind.
PAGE_OF = {
    "converge": "../pages/converge.py",
    "attack": "../pages/attack.py",
    "privacy": "../pages/privacy.py",
}

#: The pages that decide come first.
DOORS: tuple[Door, ...] = (
    Door(
        "Which one should I use?",
        "All methods on one problem, on the axes that matter to you, and an answer by rules that "
        "you can read.",
        "Choose a method",
        "../pages/which.py",
        ":material/alt_route:",
    ),
    Door(
        "What does my deployment give away?",
        "Describe it, and read which attack applies, what it gets, and what stops it.",
        "Check for leaks",
        "../pages/check.py",
        ":material/fact_check:",
    ),
    Door(
        "How fast?",
        "Every method from the same start, against rounds, bytes, local products or seconds; "
        "with the rates that theory predicts.",
        "Compare methods",
        "../pages/converge.py",
        ":material/show_chart:",
    ),
    Door(
        "What leaks?",
        "The server's view of one client, sharpening round by round, beside the truth; and what "
        "each defence changes.",
        "Watch an attack",
        "../pages/attack.py",
        ":material/visibility:",
    ),
    Door(
        "What does privacy cost?",
        "An ε that is accounted: how much noise a budget takes, what it does to accuracy, and "
        "what an attacker still learns.",
        "Spend a budget",
        "../pages/privacy.py",
        ":material/verified_user:",
    ),
    Door(
        "Can it tell attacks from normal traffic?",
        "Federated PCA as an anomaly detector on network traffic, beside the baseline that "
        "learns nothing.",
        "Detect anomalies",
        "../pages/anomaly.py",
        ":material/sensors:",
    ),
    Door(
        "Who should collaborate?",
        "One subspace for all, one for each, or something in between: when personalised PCA pays.",
        "Personalise",
        "../pages/personalise.py",
        ":material/diversity_3:",
    ),
    Door(
        "What is proved?",
        "Theorems on deterministic federated learning against measured contraction; some are "
        "false as printed.",
        "Check the theorems",
        "../pages/theory.py",
        ":material/function:",
    ),
    Door(
        "Do the papers hold?",
        "Every number that the source papers print beside ours, with its spread and a verdict; "
        "each can be run again.",
        "See the verdicts",
        "../pages/papers.py",
        ":material/menu_book:",
    ),
    Door(
        "What does my own run give away?",
        "The file that a federation on real machines leaves: everything its server saw, read "
        "without anybody's private data.",
        "Open a run",
        "../pages/trace.py",
        ":material/folder_open:",
    ),
)
