"""The inequalities under docs/PRIVACY.md, proved by a machine: an SMT solver over the real numbers (z3) for what holds for all
values, exact fractions for what is finite. `Lemma` names are those of the document.

Every claim has a negative control: the same statement with a constant that is a little too good must be refuted, with a
counterexample. What is checked is the mathematics of the text; that the program's integers fulfil its inequalities is tested
in crates/party/tests.
"""

import itertools
from fractions import Fraction

import pytest
import z3

# B of Lemma S and the weights of counts.
SQUARES, SQUARES_TOO_LARGE = Fraction(277, 100), Fraction(278, 100)
COUNT_WITH_CELLS, COUNT = Fraction(73, 100), Fraction(23, 100)
CELL = Fraction(1, 2)


def exact(number):
    return z3.RealVal(str(Fraction(number)))


def holds(claim, *given):
    """Whether no real numbers that fulfil what is given contradict the claim."""
    solver = z3.Solver()
    solver.add(*given, z3.Not(claim))
    found = solver.check()
    assert found != z3.unknown, f"not decided: {solver.reason_unknown()}"
    return found == z3.unsat


def is_identity(left, right):
    """Whether two polynomials are the same, by their monomials."""
    difference = z3.simplify(left - right, som=True, som_blowup=1_000_000)
    return z3.is_rational_value(difference) and difference.as_fraction() == 0


def dot(a, b):
    return z3.Sum([x * y for x, y in zip(a, b)])


def vector(name, length):
    return [z3.Real(f"{name}{i}") for i in range(length)]


# Lemmas S, S1 and S′: what one column contributes to the first two stages.

ENTRY, OTHER = z3.Real("entry"), z3.Real("other")
ON_THE_GRID = [-1 <= ENTRY, ENTRY <= 1, -1 <= OTHER, OTHER <= 1]


def numeric(before, after, squares, cells=0, count=0, group_changes=False):
    """What a numeric column costs that goes from one value to another; None where none is there."""
    a, b = (0 if value is None else value for value in (before, after))
    changed_cells = (before is not None) + (after is not None)
    return (
        exact(1) * (a - b) ** 2
        + exact(squares) * (a**2 - b**2) ** 2
        + exact(cells * changed_cells)
        + exact(count if group_changes else 0)
    )


def test_lemma_s_a_numeric_value_costs_at_most_four():
    assert holds(numeric(ENTRY, OTHER, SQUARES) <= 4, *ON_THE_GRID)


def test_lemma_s_is_refuted_with_a_larger_weight_of_squares():
    assert not holds(numeric(ENTRY, OTHER, SQUARES_TOO_LARGE) <= 4, *ON_THE_GRID)


@pytest.mark.parametrize(
    ("most", "cells", "count"), [(5, CELL, COUNT_WITH_CELLS), (4, Fraction(0), COUNT)], ids=["S1", "S′"]
)
def test_lemmas_s1_and_s_prime_hold_for_every_change_of_a_numeric_value(most, cells, count):
    def cost(before, after, group_changes):
        return numeric(before, after, SQUARES, cells, count, group_changes)

    assert holds(cost(ENTRY, OTHER, False) <= most, *ON_THE_GRID), "replaced"
    # The value of a group of its own appears or goes missing; so does a row's with its row.
    assert holds(cost(None, OTHER, True) <= most, *ON_THE_GRID), "appears"
    # In the shared group a missing value is an entry 0 in the middle's cell, and the count stays.
    assert holds(cost(ENTRY, exact(0), False) <= most, *ON_THE_GRID), "goes missing in the shared group"
    slack = Fraction(1, 100)
    assert not holds(numeric(None, OTHER, SQUARES, cells, count + slack, True) <= most, *ON_THE_GRID)
    if cells:
        assert not holds(numeric(ENTRY, OTHER, SQUARES, cells + slack, count, False) <= most, *ON_THE_GRID)


def level_row(level, levels, centred):
    """The entries of a column with levels: none if the value is missing."""
    if levels == 2:
        if level is None:
            return [Fraction(0)]
        return [Fraction(level) - (Fraction(1, 2) if centred else 0)]
    return [Fraction(int(level == at)) for at in range(levels)]


def worst_of_levels(levels, centred, count):
    """The largest cost of any change of a column with levels."""
    worst = Fraction(0)
    for before, after in itertools.product([None, *range(levels)], repeat=2):
        changes = zip(level_row(before, levels, centred), level_row(after, levels, centred))
        appears = (before is None) != (after is None)
        worst = max(worst, sum(((a - b) ** 2 for a, b in changes), Fraction(0)) + count * appears)
    return worst


@pytest.mark.parametrize("levels", [2, 3, 4, 7])
def test_columns_with_levels_cost_at_most_their_part(levels):
    part = 1 if levels == 2 else 2
    count = Fraction(3, 4) if levels == 2 else Fraction(1)
    assert worst_of_levels(levels, centred=False, count=Fraction(0)) == part, "Lemma S"
    assert worst_of_levels(levels, centred=True, count=count) == part, "Lemmas S1 and S′"
    assert worst_of_levels(levels, centred=True, count=count + Fraction(1, 100)) > part
    if levels == 2:
        assert worst_of_levels(levels, centred=False, count=count) > part, "why two levels are centred"


# Lemmas L and L′: products of one row's entries.


def half_of_squares(a, b):
    """½‖aaᵀ − bbᵀ‖²_F, entry by entry."""
    pairs = itertools.product(range(len(a)), repeat=2)
    return exact(Fraction(1, 2)) * z3.Sum([(a[i] * a[j] - b[i] * b[j]) ** 2 for i, j in pairs])


@pytest.mark.parametrize("length", [1, 2, 3, 5])
def test_the_norm_of_a_change_of_products_is_one_of_three_numbers(length):
    a, b = vector("a", length), vector("b", length)
    right = exact(Fraction(1, 2)) * (dot(a, a) ** 2 + dot(b, b) ** 2 - 2 * dot(a, b) ** 2)
    assert is_identity(half_of_squares(a, b), right)


def lengths(largest):
    """‖a‖², ‖b‖² and a·b of any two vectors at most so long."""
    a, b, product = z3.Reals("a_squared b_squared product")
    most = exact(largest)
    return a, b, product, [0 <= a, a <= most, 0 <= b, b <= most, product**2 <= a * b]


def test_lemma_l_holds_for_all_lengths_and_angles():
    a, b, product, given = lengths(Fraction(5, 4))
    cost = (a**2 + b**2 - 2 * product**2) / 2
    assert holds(cost <= exact(Fraction(25, 16)), *given)
    assert not holds(cost <= exact(Fraction(25, 16) * Fraction(99, 100)), *given)
    # Adding or removing a row costs half of that.
    assert holds(cost <= exact(Fraction(25, 32)), *given, b == 0)
    assert not holds(cost <= exact(Fraction(25, 32) * Fraction(99, 100)), *given, b == 0)


@pytest.mark.parametrize(("columns", "groups"), [(1, 1), (2, 1), (1, 2), (2, 3), (3, 2)])
def test_lemma_l_prime_weighs_every_published_sum_as_its_inequalities_say(columns, groups):
    """With the smallest σ that the five inequalities allow, the cost is 16μ²/(25C²) times ½‖aaᵀ − bbᵀ‖²."""
    square = Fraction(9)  # C, a square of a square root that is rational: 3
    row, present = vector("q", columns), vector("m", groups)
    other, other_present = vector("r", columns), vector("n", groups)
    part = square / (4 * groups)  # T
    # 1/σ² of each kind of sum in units of μ².
    off, diagonal = 16 / (25 * square**2), 8 / (25 * square**2)
    mean, joint, count = 4 / (25 * square * groups), Fraction(1, 25 * groups**2), Fraction(1, 50 * groups**2)

    def change(of):
        return of(row, present) - of(other, other_present)

    cost = []
    for i in range(columns):
        cost.append(exact(diagonal) * change(lambda q, m: q[i] ** 2) ** 2)
        cost += [exact(off) * change(lambda q, m: q[i] * q[j]) ** 2 for j in range(i)]
        cost += [exact(mean) * change(lambda q, m: q[i] * m[g]) ** 2 for g in range(groups)]
    for g in range(groups):
        # m_g is 0 or 1: it is its own square.
        cost.append(exact(count) * change(lambda q, m: m[g] ** 2) ** 2)
        cost += [exact(joint) * change(lambda q, m: m[g] * m[h]) ** 2 for h in range(g)]
    root = z3.Real("root")  # √T
    a, b = row + [root * m for m in present], other + [root * m for m in other_present]
    half = half_of_squares(a, b)
    known = [root**2 == exact(part), root > 0]
    assert holds(z3.Sum(cost) == exact(16 / (25 * square**2)) * half, *known)
    assert not holds(z3.Sum(cost) == exact(15 / (25 * square**2)) * half, *known)


def test_lemma_l_prime_bounds_the_length_of_a_row_with_its_presence():
    square, part, groups, there, row = z3.Reals("C T G there row")
    given = [square > 0, groups >= 1, 0 <= there, there <= groups, part * 4 * groups == square, 0 <= row, row <= square]
    assert holds(4 * (row + part * there) <= 5 * square, *given)


# Theorems M and M′: mixed rows.


def test_theorem_m_holds_with_the_id_kept_and_changed():
    square, weight, kept, product, row, other = z3.Reals("C w kept product row other")
    given = [
        square > 0,
        weight > 0,
        0 <= row,
        row <= square,
        0 <= other,
        other <= square,
        product**2 <= row * other,
        -weight <= kept,
        kept <= weight,
    ]
    # ‖b′q′ᵀ − bqᵀ‖² with b·b′ = kept, q·q′ = product.
    cost = weight * row + weight * other - 2 * kept * product
    assert holds(cost <= 4 * square * weight, *given)
    assert not holds(100 * cost <= 99 * 4 * square * weight, *given)


def test_theorem_m_prime_holds_for_every_neighbour_and_needs_its_weight():
    square, presence, row, other, product = z3.Reals("C W² row other product")
    given = [
        square > 0,
        presence <= square,
        presence >= 0,
        0 <= row,
        row <= square,
        0 <= other,
        other <= square,
        product**2 <= row * other,
    ]
    same, another = row + other - 2 * product, row + other + 2 * presence
    assert holds(same <= 4 * square, *given)
    assert holds(another <= 4 * square, *given)
    assert holds(row + presence <= 2 * square, *given), "added or removed: half"
    heavier = [given[0], 100 * presence == 101 * square, *given[2:]]
    assert not holds(another <= 4 * square, *heavier)
    # With signs, a person who comes back with the other sign changes presence by twice its weight.
    assert not holds(same + 4 * presence <= 4 * square, *given)


def test_adding_or_removing_a_row_costs_a_half_and_an_eighth_at_most():
    share = z3.Real("A")
    cost = share / 4 + share / 4 + (share / 2) / 2 + (1 - share) / 2
    assert is_identity(cost, exact(Fraction(1, 2)) + share / 4)
    assert holds(cost <= exact(Fraction(5, 8)), 0 <= share, 2 * share <= 1)


# Lemma B and the rounding of noise.


def factor_of_rounding(unit):
    """What four roundings and a conversion can add to the square of an entry that is pulled in."""
    return (1 + unit) ** 5 / (1 - unit)


def test_lemma_b_keeps_an_integer_square_norm_within_c():
    unit = Fraction(1, 2**53)
    largest = 2**50 - 1
    assert largest * factor_of_rounding(unit) < largest + 1
    # What is proved ends about there: with C = 2⁵¹ one unit of C is no longer enough.
    assert 2**51 * factor_of_rounding(unit) > 2**51 + 1


def test_rounding_is_shifted_by_integers_as_theorem_3_says():
    number, moved = z3.Int("q"), z3.Real("t")

    def up(value):
        return z3.ToInt(value + exact(Fraction(1, 2)))

    def away_from_zero(value):
        return z3.If(value >= 0, up(value), -up(-value))

    assert holds(up(moved + z3.ToReal(number)) == number + up(moved))
    no_tie = z3.Not(z3.IsInt(moved + exact(Fraction(1, 2))))
    for by in range(-3, 4):
        shifted = away_from_zero(moved + by) == by + away_from_zero(moved)
        assert holds(shifted, no_tie), "ties are immaterial"
    assert not holds(away_from_zero(moved + 1) == 1 + away_from_zero(moved)), "but they are there"


# Lemmas X1 and X2: blocks of an exchange.


def test_lemma_x1_a_block_moves_by_at_most_two_radii():
    mine, theirs, row, other, product, partner = z3.Reals("Ci Cj row other product partner")
    given = [mine > 0, theirs > 0, 0 <= row, row <= mine, 0 <= other, other <= mine, product**2 <= row * other]
    moved = row + other - 2 * product
    assert holds(moved * partner <= 4 * mine * theirs, *given, moved >= 0, 0 <= partner, partner <= theirs)
    assert not holds(moved * partner <= 3 * mine * theirs, *given, 0 <= partner, partner <= theirs)


def joint_cost(signs, parties):
    """What one subject replaced at the honest parties costs, by cosines of its rows there, κ = 1."""
    honest = len(signs)
    among = sum((2 - 2 * a * b) / 8 for a, b in itertools.combinations(signs, 2))
    return among + (parties - honest) * sum((2 - 2 * c) / 4 for c in signs)


@pytest.mark.parametrize(("parties", "honest"), [(2, 2), (3, 3), (3, 2), (4, 4), (4, 1), (5, 3)])
def test_lemma_x2_is_the_largest_cost_over_all_cosines(parties, honest):
    cosines = vector("c", honest)
    within = [z3.And(-1 <= c, c <= 1) for c in cosines]
    most = max(
        Fraction(a * (parties - honest)) + Fraction(a * (honest - a), 2) for a in range(honest + 1)
    )
    cost = joint_cost(cosines, parties)
    assert holds(cost <= exact(most), *within)
    assert not holds(cost <= exact(most * Fraction(99, 100)), *within)
    if honest == parties:
        assert most == Fraction(parties**2 - parties % 2, 8)


@pytest.mark.parametrize("length", [1, 2, 3])
def test_lemma_x2_counts_the_change_of_a_block_by_cosines(length):
    a, b, c, d = (vector(name, length) for name in "abcd")
    changed = z3.Sum([(a[i] * c[j] - b[i] * d[j]) ** 2 for i in range(length) for j in range(length)])
    right = dot(a, a) * dot(c, c) + dot(b, b) * dot(d, d) - 2 * dot(a, b) * dot(c, d)
    assert is_identity(changed, right)
