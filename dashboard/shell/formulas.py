"""What the curves of Converge and Attack measure, with their formulas."""

from __future__ import annotations

from dashboard.shell.layout import about


def measures() -> None:
    """Fold: the four measures and what is minimised."""
    about(
        "What the curves measure",
        "All clients look for one frame $Z$ with orthonormal columns that captures most of the "
        "pooled second moments $S$. Every measure depends on the span of $Z$ only, is computed "
        "after the run, and needs all the data: simulation only.\n\n"
        "- **Relative error** $\\|\\sigma-\\sigma_*\\|_2/\\|\\sigma_*\\|_2$ with "
        "$\\sigma=\\sqrt{\\operatorname{eig}(Z^\\top S Z)}$: quadratic in the angle.\n"
        "- **KKT violation** $\\|(I-ZZ^\\top)SZ\\|_F/\\operatorname{tr}S$.\n"
        "- **Largest angle** $\\|(I-ZZ^\\top)U_p\\|_2$ to the true leading vectors $U_p$.\n"
        "- **Consensus gap** $\\frac1d\\sum_i\\|X_iX_i^\\top-ZZ^\\top\\|_F^2$ of the clients' own "
        "frames $X_i$.",
        formula=r"\max_{Z^\top Z=I_p}\ \tfrac12\operatorname{tr}\big(Z^\top S Z\big),"
        r"\qquad S=\sum_i w_i S_i,\quad S_i=\tfrac1{m_i}A_iA_i^\top",
        source="FAPS, sections 1 and 5; client i holds the block Aᵢ of features × mᵢ records.",
    )


def rates() -> None:
    """Fold: the predicted local rates."""
    about(
        "Where the dashed lines come from",
        "Near the solution the angle shrinks by a fixed factor a round. For FAPS the formula is "
        "ours, exact for identical clients with $J$ inner steps; the smaller β and the more inner "
        "steps, the faster, until some client leaves the consensus. Square the factor for the "
        "relative error.",
        formula=r"\text{SSI: }\frac{\lambda_{p+1}}{\lambda_p}\qquad"
        r"\text{FAPS: }\max_{l\le p<j}\ 1-c\,\frac{g}{g+\beta},\quad g=\lambda_l-\lambda_j,\quad"
        r"c=1-\Big(\frac{\lambda_j}{\lambda_l+\beta}\Big)^{J}",
        source="measured against runs in the tests, to 2%.",
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
    )
