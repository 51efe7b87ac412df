"""Laws of merging: nobody goes back, and everybody who hears the same agrees."""

from hypothesis import given
from hypothesis import strategies as st

from gossip.peer import Health
from gossip.wire.messages import Dead, Suspect
from support.talk import Talk, alive

incarnations = st.integers(1, 6)
lives = incarnations.map(lambda number: alive(1, number))
deaths = st.builds(Dead, incarnations, st.just("n1"), st.sampled_from(["n1", "n2"]))
doubts = st.builds(Suspect, incarnations, st.just("n1"), st.sampled_from(["n2", "n3", "me"]))


def standing(talk):
    member = talk.member(1)
    return None if member is None else (member.incarnation, member.health)


def heard(words):
    talk = Talk()
    talk.hear(alive(1, 1))
    for word in words:
        talk.hear(word)
    return talk


@given(st.lists(st.one_of(lives, deaths, doubts), max_size=12))
def test_no_order_of_words_brings_a_member_back(words):
    talk = heard([])

    for word in words:
        before = standing(talk)
        talk.hear(word)
        assert standing(talk) >= before


@given(st.lists(st.one_of(lives, deaths), max_size=8), st.randoms(use_true_random=False))
def test_life_and_death_come_to_the_same_in_any_order(words, random):
    shuffled = list(words)
    random.shuffle(shuffled)

    assert standing(heard(words)) == standing(heard(shuffled))


@given(st.lists(st.one_of(lives, deaths, doubts), max_size=8), st.randoms(use_true_random=False))
def test_a_refutation_settles_every_history(words, random):
    shuffled = list(words)
    random.shuffle(shuffled)
    highest = max([word.incarnation for word in words], default=1)
    refutation = alive(1, highest + 1)

    for each in (words, shuffled):
        assert standing(heard([*each, refutation])) == (highest + 1, Health.ALIVE)


@given(st.lists(st.one_of(lives, deaths), max_size=8))
def test_repetition_changes_nothing(words):
    talk = heard(words)
    before, told = standing(talk), len(talk.effects)

    for word in words:
        talk.hear(word)

    assert standing(talk) == before
    assert not any(effects.events for effects in talk.effects[told:])
