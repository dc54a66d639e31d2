"""What the curves of Converge and Attack measure, with their formulas."""

from __future__ import annotations

from dashboard.shell.layout import about


def measures() -> None:
    """Fold: the four measures and what is minimised."""
    about(
        "What the curves measure",
        "All clients look for one basis $Z$ with orthonormal columns that captures most of the "
        "pooled second moments $S$. Every measure depends on the span of $Z$ only, is computed "
        "after the run, and needs all the data: simulation only.\n\n"
        "- **Relative error** $\\|\\sigma-\\sigma_*\\|_2/\\|\\sigma_*\\|_2$ with "
        "$\\sigma=\\sqrt{\\operatorname{eig}(Z^\\top S Z)}$: quadratic in the angle.\n"
        "- **KKT violation** $\\|(I-ZZ^\\top)SZ\\|_F/\\operatorname{tr}S$.\n"
        "- **Largest angle** $\\|(I-ZZ^\\top)U_p\\|_2$ to the true leading vectors $U_p$.\n"
        "- **Consensus gap** $\\frac1d\\sum_i\\|X_iX_i^\\top-ZZ^\\top\\|_F^2$ of the clients' own "
        "bases $X_i$.",
        formula=r"\max_{Z^\top Z=I_p}\ \tfrac12\operatorname{tr}\big(Z^\top S Z\big),"
        r"\qquad S=\sum_i w_i S_i,\quad S_i=\tfrac1{m_i}A_iA_i^\top",
        source="FAPS, sections 1 and 5; client i holds the block Aᵢ of features × mᵢ records.",
        papers=("faps",),
    )


def rates() -> None:
    """Fold: the predicted runs."""
    about(
        "Where the dashed lines come from",
        "Close to its limit $V$ a basis is the span of $V+T$ with a small $T$ across $V$, and a "
        "round maps the $T_i$ of the clients and the $T$ of the server linearly, with matrices "
        "that follow from the $S_i$ as the clients hold them (simulation only): with noise at the "
        "source the limit is the leading space of the noisy matrices, and errors are those to the "
        "honest one. A dashed line starts from the bases of the "
        "round in which all are within a distance of 0.05 and lets this map alone say the rest, so "
        "it holds for clients that differ. It is drawn for SSI, for LocalPower once it takes "
        "single steps, and for FAPS with the inner rules “automatic” and “fixed number”; with "
        "everyone present and no noise on uploads, until the rounding of messages plays a part. "
        "SSI's angle to $V$ ends at the factor $\\lambda_{p+1}/\\lambda_p$ a round, its square "
        "for the relative error. FAPS makes $J_i$ inner steps on $T_i$ with $K_i$ held fixed, then "
        "the server averages; "
        "$M_i=V^\\top S_iV$, and $D_i$ is the block of $S_i$ across $V$:",
        formula=r"\begin{gathered}K_i=T_iM_i-D_iT_i+\beta_iT\\T_i\leftarrow(K_i+D_iT_i)"
        r"(M_i+\beta_iI)^{-1}\\T\leftarrow\tfrac{1}{\sum_iw_i\beta_i}\textstyle\sum_iw_i"
        r"(\beta_iT_i+D_iT_i-T_iM_i)\end{gathered}",
        source="derived here; in the tests slopes agree with runs to 5%, and lines with drawn runs "
        "(ε, float32, clients that differ) to half a decade.",
        papers=("faps",),
    )


def reconstruction() -> None:
    """Fold: the linear attack and its completion."""
    about(
        "How the server reconstructs",
        "Every broadcast $Z_k$ and answer $Y_k=S_iZ_k$ is a set of linear equations in $S_i$. The "
        "server stacks them and takes the smallest matrix that satisfies all; once the broadcasts "
        "span the feature space it is exact. Knowing that $S_i$ is symmetric, half as many "
        "directions say almost as much. FAPS answers with $(\\beta_iX_iX_i^\\top-\\Lambda_i)Z$, "
        "which is no product with $S_i$, so this attack fails, but the replay below does not.",
        formula=r"\hat S_i=\arg\min_\Phi\|\Phi\|_F\ \text{ s.t. }\Phi\,[Z_1\,..\,Z_k]="
        r"[Y_1\,..\,Y_k]",
        source="FAPS, section on privacy; symmetric completion and replay are ours.",
        papers=("faps",),
    )
