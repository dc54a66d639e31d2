"""Which federated PCA should I use?"""

import streamlit as st

from dashboard.shell import jobs, layout, own_table, share
from dashboard.shell.controls import Controls
from dashboard.shell.data import faps_controls, noise_controls, problem_controls
from dashboard.shell.parts import ask, drawing, lay_out
from dashboard.views import frontier
from fedpca_core.questions.which import figures
from fedpca_core.questions.which.frontier import Frontier
from fedpca_core.questions.which.look import FirstLook
from fedpca_core.questions.which.recommendation import Advice, Recommendation, named
from fedpca_core.questions.which.remedies import Remedies, at_hand
from fedpca_core.questions.which.settings import FrontierSettings
from fedpca_core.questions.which.use import Use
from fedpca_core.study.parts import words

STUDY, ADVICE, REMEDIES, LOOK = Frontier(), Recommendation(), Remedies(), FirstLook()


@st.fragment(key="hidden")
def hidden() -> None:
    jobs.below(job, STUDY.key, lambda found: lay_out(figures.hidden(found)))


@st.fragment(key="would")
def would_do() -> None:
    """What would do, where nothing does all of it; searched for once that is known."""
    advice: Advice | None = recommended.result
    if not recommended.done or advice is None or advice.table.empty or advice.place(1) is not None:
        jobs.forget(REMEDIES)  # of an earlier state of the page
        return
    layout.section("What would do it", "One demand relaxed at a time, by as little as does it.")
    lay_out(figures.would_do(at_hand(advice, settings), settings))
    ask(REMEDIES, settings, figures.would_do, data=data, parts=["taken"], sentences=True)


@st.fragment(key="use")
def use_it() -> None:
    advice: Advice | None = recommended.result
    best = None if advice is None or advice.table.empty else advice.place(1)
    if best is None or not recommended.done:
        return
    if not (place := layout.opened(f"Use it: {named(best)}", "use-fold", icon=":material/code:")):
        return
    made = Use.of(best, settings, data, advice)
    files = made.files()
    with place:
        if made.refused():
            st.caption(made.refused())
        if "fit.py" in files:
            st.markdown("On your table, in simulation, after `pip install .`:")
            st.code(files["fit.py"], language="python")
        st.markdown("On Flower, with `settings.json` of the archive:")
        st.code(made.commands(), language="bash", wrap_lines=True)
        st.markdown("What it gives away, counted before anything runs:")
        st.code("python -m fedpca_core check check.json", language="bash")
        share.download_archive(
            lambda: files,
            name="use-it",
            label="All of it",
            told="Script, notebook, settings and deployment file in one archive.",
        )


controls = Controls(FrontierSettings)
controls.heading("Which federated PCA should I use?", words("which-lead"))

with st.sidebar:
    st.header("Problem", anchor=False)
    problem_controls(controls)
    st.header("Run", anchor=False)
    controls.parameter("candidates")
    controls.draw("rounds", "accuracy", "measure", "participation", "seeds", "seed", "searches")
    with st.expander("Parameters of the methods"):
        faps_controls(controls)
        controls.draw("local_steps", "rho_factor")
    with st.expander("Differential privacy"):
        noise_controls(controls)
        if "clip_norm" not in controls.values:  # paths over ε clip too
            controls.draw("delta", "clip_norm")
    with st.expander("On the wire"):
        controls.draw("dtype", "secure_aggregation", "shared_noise")

layout.section("What to use", "Say what you need; every candidate is run as you could deploy it.")
with st.container(horizontal=True, gap="medium", vertical_alignment="bottom"):
    controls.draw("server", "needed_epsilon", "most_lost")
    controls.draw("budget_bytes", "budget_rounds", "link")
advised = st.container()
looked = st.container()

layout.section("All methods on one problem", words("which-methods"))
with st.container(horizontal=True, gap="medium", vertical_alignment="bottom"):
    controls.draw("vary", "across", "upward")
pictured = st.container()

settings = controls.settings()
data = own_table.of(settings)
with advised:
    recommended = jobs.study(
        ADVICE,
        settings,
        drawing(figures.advice, settings, data=data),
        data=data,
        patience=0.1,  # the picture below does not wait for it
        parts=["taken", "remedy", "use", "would"],  # who waits for a file first
        sentences=True,
    )
    own_table.remedy_of(controls, recommended)
    would_do()
    use_it()
if LOOK.wanted(settings) and data is not None:
    with looked:
        layout.section("Your table", "Before any protection: what everybody who does PCA sees.")
        ask(LOOK, settings, figures.look, data=data)
with pictured:
    job = jobs.study(
        STUDY,
        settings,
        lambda found: frontier.draw(found, settings, data),
        data=data,
        parts=["hidden", "taken"],
        above=recommended,
    )
hidden()
share.take_away(settings, data)
