"""The lifecycle machine: total, ends in GONE, never leaves it."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from fourwalls.model.lifecycle import Effect, Event, RefusedTransition, State, Step, step


@pytest.mark.parametrize("state", State)
@pytest.mark.parametrize("event", Event)
def test_every_pair_is_written_out(state: State, event: Event) -> None:
    with contextlib.suppress(RefusedTransition):
        assert isinstance(step(state, event), Step)


@pytest.mark.parametrize("state", [s for s in State if s not in (State.GONE, State.KILLING)])
def test_a_kill_or_the_end_of_the_lease_kills_from_everywhere(state: State) -> None:
    for event in (Event.ASK_KILL, Event.LEASE_ENDED):
        assert step(state, event) == Step(State.KILLING, (Effect.KILL,))


@pytest.mark.parametrize("state", [s for s in State if s is not State.GONE])
def test_the_end_is_recorded_once(state: State) -> None:
    assert step(state, Event.ENDED) == Step(State.GONE, (Effect.RECORD_END,))
    assert step(State.GONE, Event.ENDED) == Step(State.GONE)


class Life(RuleBasedStateMachine):
    """Random lives: whatever happens, gone stays gone and every kill asked for is carried out."""

    def __init__(self) -> None:
        super().__init__()
        self.state = State.CREATING
        self.was_gone = False
        self.kills = 0

    @rule(event=st.sampled_from(list(Event)))
    def happen(self, event: Event) -> None:
        try:
            outcome = step(self.state, event)
        except RefusedTransition:
            return
        self.kills += outcome.effects.count(Effect.KILL)
        self.state = outcome.state
        self.was_gone = self.was_gone or self.state is State.GONE

    @invariant()
    def gone_is_final(self) -> None:
        assert not self.was_gone or self.state is State.GONE

    @invariant()
    def killed_at_most_once(self) -> None:
        assert self.kills <= 1


TestLife = Life.TestCase
