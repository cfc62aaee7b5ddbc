"""The life of a sandbox as a pure function: ``step(state, event) -> (state, effects)``.

Every pair of state and event is written out. A pair that makes no sense is refused with a reason,
so that a caller hears why and nothing happens by accident.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass


class State(enum.Enum):
    """Where a sandbox is in its life."""

    CREATING = "creating"
    RUNNING = "running"
    PAUSING = "pausing"
    PAUSED = "paused"
    RESUMING = "resuming"
    KILLING = "killing"
    GONE = "gone"


class Event(enum.Enum):
    """What happens to a sandbox: requests (``ASK_*``) and reports."""

    ASK_PAUSE = "ask_pause"
    ASK_RESUME = "ask_resume"
    ASK_KILL = "ask_kill"
    LEASE_ENDED = "lease_ended"
    READY = "ready"
    START_FAILED = "start_failed"
    PAUSED = "paused"
    PAUSE_FAILED = "pause_failed"
    RESUMED = "resumed"
    RESUME_FAILED = "resume_failed"
    ENDED = "ended"


class Effect(enum.Enum):
    """What the host has to do after a step."""

    PAUSE = "pause"
    RESUME = "resume"
    KILL = "kill"
    RECORD_END = "record_end"


@dataclass(frozen=True)
class Step:
    """The outcome of one step."""

    state: State
    effects: tuple[Effect, ...] = ()


class RefusedTransition(Exception):
    """The event makes no sense in this state. The message says why."""


_Table = dict[Event, Step | str]

_KILL = Step(State.KILLING, (Effect.KILL,))
_END = Step(State.GONE, (Effect.RECORD_END,))
_NEVER = "the host reported something that cannot happen here"

_TABLE: dict[State, _Table] = {
    State.CREATING: {
        Event.ASK_PAUSE: "the sandbox is still being created",
        Event.ASK_RESUME: "the sandbox is still being created",
        Event.ASK_KILL: _KILL,
        Event.LEASE_ENDED: _KILL,
        Event.READY: Step(State.RUNNING),
        Event.START_FAILED: _END,
        Event.PAUSED: _NEVER,
        Event.PAUSE_FAILED: _NEVER,
        Event.RESUMED: _NEVER,
        Event.RESUME_FAILED: _NEVER,
        Event.ENDED: _END,
    },
    State.RUNNING: {
        Event.ASK_PAUSE: Step(State.PAUSING, (Effect.PAUSE,)),
        Event.ASK_RESUME: Step(State.RUNNING),
        Event.ASK_KILL: _KILL,
        Event.LEASE_ENDED: _KILL,
        Event.READY: _NEVER,
        Event.START_FAILED: _NEVER,
        Event.PAUSED: _NEVER,
        Event.PAUSE_FAILED: _NEVER,
        Event.RESUMED: _NEVER,
        Event.RESUME_FAILED: _NEVER,
        Event.ENDED: _END,
    },
    State.PAUSING: {
        Event.ASK_PAUSE: Step(State.PAUSING),
        Event.ASK_RESUME: "the sandbox is being paused; resume it when that is done",
        Event.ASK_KILL: _KILL,
        Event.LEASE_ENDED: _KILL,
        Event.READY: _NEVER,
        Event.START_FAILED: _NEVER,
        Event.PAUSED: Step(State.PAUSED),
        Event.PAUSE_FAILED: Step(State.RUNNING),
        Event.RESUMED: _NEVER,
        Event.RESUME_FAILED: _NEVER,
        Event.ENDED: _END,
    },
    State.PAUSED: {
        Event.ASK_PAUSE: Step(State.PAUSED),
        Event.ASK_RESUME: Step(State.RESUMING, (Effect.RESUME,)),
        Event.ASK_KILL: _KILL,
        Event.LEASE_ENDED: _KILL,
        Event.READY: _NEVER,
        Event.START_FAILED: _NEVER,
        Event.PAUSED: _NEVER,
        Event.PAUSE_FAILED: _NEVER,
        Event.RESUMED: _NEVER,
        Event.RESUME_FAILED: _NEVER,
        Event.ENDED: _END,
    },
    State.RESUMING: {
        Event.ASK_PAUSE: "the sandbox is being resumed; pause it when that is done",
        Event.ASK_RESUME: Step(State.RESUMING),
        Event.ASK_KILL: _KILL,
        Event.LEASE_ENDED: _KILL,
        Event.READY: _NEVER,
        Event.START_FAILED: _NEVER,
        Event.PAUSED: _NEVER,
        Event.PAUSE_FAILED: _NEVER,
        Event.RESUMED: Step(State.RUNNING),
        Event.RESUME_FAILED: Step(State.PAUSED),
        Event.ENDED: _END,
    },
    State.KILLING: {
        Event.ASK_PAUSE: "the sandbox is being killed",
        Event.ASK_RESUME: "the sandbox is being killed",
        Event.ASK_KILL: Step(State.KILLING),
        Event.LEASE_ENDED: Step(State.KILLING),
        # What was under way when the kill came may still report; it changes nothing.
        Event.READY: Step(State.KILLING),
        Event.START_FAILED: _END,
        Event.PAUSED: Step(State.KILLING),
        Event.PAUSE_FAILED: Step(State.KILLING),
        Event.RESUMED: Step(State.KILLING),
        Event.RESUME_FAILED: Step(State.KILLING),
        Event.ENDED: _END,
    },
    State.GONE: {
        Event.ASK_PAUSE: "the sandbox is gone",
        Event.ASK_RESUME: "the sandbox is gone",
        Event.ASK_KILL: Step(State.GONE),
        Event.LEASE_ENDED: Step(State.GONE),
        Event.READY: _NEVER,
        Event.START_FAILED: Step(State.GONE),
        Event.PAUSED: Step(State.GONE),
        Event.PAUSE_FAILED: Step(State.GONE),
        Event.RESUMED: Step(State.GONE),
        Event.RESUME_FAILED: Step(State.GONE),
        Event.ENDED: Step(State.GONE),
    },
}


def step(state: State, event: Event) -> Step:
    """The next state and what to do, or :class:`RefusedTransition` with the reason."""
    outcome = _TABLE[state][event]
    if isinstance(outcome, str):
        raise RefusedTransition(f"{event.value} in state {state.value}: {outcome}")
    return outcome
