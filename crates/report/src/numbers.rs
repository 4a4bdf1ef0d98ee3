//! Numbers as people read them: rounded to what their error allows, with a true minus sign.

use potluck_release::model::Estimate;

/// Fixed notation ends here; larger numbers are written with a power of ten.
const FIXED_BELOW: f64 = 1e7;
/// Fixed notation shows at most this many decimals.
const MOST_DECIMALS: i32 = 6;
/// Digits after the point of a mantissa, at most.
const MOST_MANTISSA: i32 = 6;

/// The place to which an estimate, its error and its interval are rounded: two digits of the
/// standard error.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Rounding {
    /// The last digit shown stands for 10^place.
    place: i32,
    scientific: bool,
}

impl Rounding {
    /// The rounding that suits an estimate.
    pub(crate) fn of(estimate: &Estimate) -> Self {
        let Estimate { estimate, standard_error, low, high } = *estimate;
        let largest = [estimate, low, high, standard_error]
            .into_iter()
            .filter(|value| value.is_finite())
            .fold(0.0, |most: f64, value| most.max(value.abs()));
        let mut place = match (exponent(standard_error), exponent(largest)) {
            (Some(error), _) => error - 1,
            (None, Some(size)) => size - 5,
            (None, None) => 0,
        };
        // The end of an interval that excludes 0 must not be shown as 0.
        let nearest = if low > 0.0 { low } else { -high };
        if let (true, Some(size)) = (nearest > 0.0, exponent(nearest)) {
            place = place.min(size).max(place - 4);
        }
        Self { place, scientific: largest >= FIXED_BELOW || place < -MOST_DECIMALS }
    }

    /// The number, rounded.
    pub(crate) fn show(self, value: f64) -> String {
        if !value.is_finite() {
            return not_finite(value);
        }
        if self.scientific {
            let digits = exponent(value).map_or(0, |exponent| exponent - self.place);
            scientific(value, digits.clamp(1, MOST_MANTISSA) as usize)
        } else {
            fixed(value, (-self.place).clamp(0, MOST_DECIMALS) as usize)
        }
    }
}

/// A number with this many significant digits at most, without trailing zeros.
pub fn significant(value: f64, digits: usize) -> String {
    let Some(size) = exponent(value) else {
        return if value.is_finite() { "0".to_owned() } else { not_finite(value) };
    };
    // Rounding may carry into the next power of ten, which changes nothing that is shown.
    if (1e-4..FIXED_BELOW).contains(&value.abs()) {
        let decimals = (digits as i32 - 1 - size).max(0) as usize;
        trim_zeros(&fixed(value, decimals))
    } else {
        scientific_trimmed(value, digits.saturating_sub(1))
    }
}

/// A number in a range of this width, with three digits of the width.
pub(crate) fn within(value: f64, width: f64) -> String {
    match (exponent(value), exponent(width)) {
        (Some(size), Some(of_width)) => significant(value, (size - of_width).clamp(0, 12) as usize + 3),
        _ => significant(value, 3),
    }
}

/// As many digits as matter, rounded up: for numbers that must not be understated.
pub fn rounded_up(value: f64) -> String {
    significant(potluck_release::statement::for_people(value), 6)
}

/// A count with its thousands apart.
pub fn count(value: u64) -> String {
    group(&value.to_string())
}

/// A share of one in percent.
pub fn percent(share: f64) -> String {
    match share * 100.0 {
        percent if percent.is_nan() => "unknown".to_owned(),
        percent if percent > 0.0 && percent < 0.1 => "under 0.1%".to_owned(),
        percent if percent < 10.0 => format!("{}%", trim_zeros(&fixed(percent, 1))),
        percent => format!("{}%", fixed(percent, 0)),
    }
}

/// A share of one with this many decimals at most, within 0 and 1 whatever chance made of its
/// estimate.
pub(crate) fn share(value: f64, decimals: usize) -> String {
    if value.is_nan() { not_finite(value) } else { trim_zeros(&fixed(value.clamp(0.0, 1.0), decimals)) }
}

/// A confidence level in percent, with every digit it has.
pub fn level(level: f64) -> String {
    format!("{}%", significant(level * 100.0, 10))
}

/// The number to the last bit, for machines.
pub(crate) fn exact(value: f64) -> String {
    format!("{value:?}")
}

/// Tick labels: every one with the decimals that the step needs.
pub(crate) fn tick(value: f64, step: f64, largest: f64) -> String {
    let place = exponent(step).unwrap_or(0);
    if largest >= FIXED_BELOW || place < -MOST_DECIMALS {
        let digits = exponent(value).map_or(0, |exponent| exponent - place);
        return scientific_trimmed(value, digits.clamp(0, MOST_MANTISSA) as usize);
    }
    fixed(value, (-place).max(0) as usize)
}

/// Tick labels of a logarithmic scale.
pub(crate) fn power_tick(value: f64) -> String {
    if (1e-3..1e4).contains(&value) { significant(value, 2) } else { scientific_trimmed(value, 1) }
}

/// The power of ten of the first significant digit, for a finite number that is not 0.
fn exponent(value: f64) -> Option<i32> {
    // Formatting gets powers of ten right where a logarithm may be off by one.
    (value.is_finite() && value != 0.0).then(|| {
        let text = format!("{:e}", value.abs());
        text.split_once('e')
            .and_then(|(_, power)| power.parse().ok())
            .expect("scientific notation has a power")
    })
}

fn not_finite(value: f64) -> String {
    if value.is_nan() {
        "not a number".to_owned()
    } else {
        if value > 0.0 { "∞" } else { "−∞" }.to_owned()
    }
}

fn fixed(value: f64, decimals: usize) -> String {
    let text = format!("{:.decimals$}", value.abs());
    let zero = !text.contains(|digit: char| ('1'..='9').contains(&digit));
    let sign = if value < 0.0 && !zero { "−" } else { "" };
    match text.split_once('.') {
        Some((whole, fraction)) => format!("{sign}{}.{fraction}", group(whole)),
        None => format!("{sign}{}", group(&text)),
    }
}

fn scientific(value: f64, digits: usize) -> String {
    let text = format!("{value:.digits$e}");
    let (mantissa, power) = text.split_once('e').expect("scientific notation has an e");
    with_power(mantissa, power)
}

fn scientific_trimmed(value: f64, digits: usize) -> String {
    let text = format!("{value:.digits$e}");
    let (mantissa, power) = text.split_once('e').expect("scientific notation has an e");
    with_power(&trim_zeros(mantissa), power)
}

fn with_power(mantissa: &str, power: &str) -> String {
    let raised: String = power
        .chars()
        .map(|digit| match digit {
            '-' => '⁻',
            '1' => '¹',
            '2' => '²',
            '3' => '³',
            '4' => '⁴',
            '5' => '⁵',
            '6' => '⁶',
            '7' => '⁷',
            '8' => '⁸',
            '9' => '⁹',
            _ => '⁰',
        })
        .collect();
    match (mantissa, power) {
        (_, "0") => mantissa.replace('-', "−"),
        ("1", _) => format!("10{raised}"),
        ("-1", _) => format!("−10{raised}"),
        _ => format!("{}×10{raised}", mantissa.replace('-', "−")),
    }
}

fn trim_zeros(text: &str) -> String {
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { text }.to_owned()
}

/// Commas between thousands, from five digits on.
fn group(digits: &str) -> String {
    if digits.len() < 5 {
        return digits.to_owned();
    }
    let mut out = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(estimate: f64, standard_error: f64) -> [String; 2] {
        let estimate = Estimate {
            estimate,
            standard_error,
            low: estimate - 2.0 * standard_error,
            high: estimate + 2.0 * standard_error,
        };
        let rounding = Rounding::of(&estimate);
        [rounding.show(estimate.estimate), rounding.show(standard_error)]
    }

    #[test]
    fn estimates_are_rounded_to_two_digits_of_their_error() {
        assert_eq!(shown(0.431_234, 0.012_345), ["0.431", "0.012"]);
        assert_eq!(shown(-0.431_234, 0.12), ["−0.43", "0.12"]);
        assert_eq!(shown(123_456.7, 321.0), ["123,457", "321"]);
        assert_eq!(shown(3.2e-12, 4.56e-13), ["3.20×10⁻¹²", "4.6×10⁻¹³"]);
        assert_eq!(shown(-3.2e12, 4.56e11), ["−3.20×10¹²", "4.6×10¹¹"]);
        assert_eq!(shown(0.0, 0.0), ["0", "0"]);
        assert_eq!(shown(2.0, 0.0), ["2.00000", "0.00000"]);
        assert_eq!(shown(-1e-9, 0.5), ["0.00", "0.50"]);
        assert_eq!(shown(1e-12, 1e-12), ["1.0×10⁻¹²", "1.0×10⁻¹²"]);
    }

    #[test]
    fn an_end_that_is_not_zero_is_not_shown_as_zero() {
        let value = Estimate { estimate: -0.23, standard_error: 0.115, low: -0.4597, high: -0.0003 };
        let rounding = Rounding::of(&value);
        assert_eq!([value.low, value.high].map(|end| rounding.show(end)), ["−0.4597", "−0.0003"]);
    }

    #[test]
    fn significant_digits_do_not_trail_zeros() {
        assert_eq!(significant(41.0, 6), "41");
        assert_eq!(significant(0.25, 6), "0.25");
        assert_eq!(significant(-1_234_567.8, 6), "−1,234,568");
        assert_eq!(significant(1e-5, 6), "10⁻⁵");
        assert_eq!(significant(2.5e-12, 6), "2.5×10⁻¹²");
        assert_eq!(significant(1e300, 6), "10³⁰⁰");
        assert_eq!(significant(0.0, 6), "0");
        assert_eq!(significant(f64::INFINITY, 6), "∞");
    }

    #[test]
    fn ends_of_a_range_have_the_digits_that_its_width_needs() {
        assert_eq!([within(100_012.34, 1.5), within(100_013.84, 1.5)], ["100,012.34", "100,013.84"]);
        assert_eq!([within(-3.0, 120.0), within(117.0, 120.0)], ["−3", "117"]);
        assert_eq!(within(0.0, 0.0), "0");
    }

    #[test]
    fn guarantees_are_never_understated() {
        assert_eq!(rounded_up(1.0), "1");
        assert_eq!(rounded_up(2.706_390_000_1), "2.71");
        assert_eq!(rounded_up(0.268_051_4), "0.269");
        assert_eq!(rounded_up(9.999_991), "10");
    }

    #[test]
    fn percentages() {
        assert_eq!(percent(0.0), "0%");
        assert_eq!(percent(0.000_5), "under 0.1%");
        assert_eq!(percent(0.051), "5.1%");
        assert_eq!(percent(0.415), "42%");
        assert_eq!(percent(1.0), "100%");
        assert_eq!(share(0.4567, 2), "0.46");
        assert_eq!(share(-0.2, 3), "0");
        assert_eq!(share(1.2, 3), "1");
        assert_eq!(share(f64::NAN, 3), "not a number");
        assert_eq!(level(0.95), "95%");
        assert_eq!(level(0.999), "99.9%");
    }

    #[test]
    fn ticks_share_their_decimals() {
        assert_eq!(tick(0.0, 0.05, 0.2), "0.00");
        assert_eq!(tick(-0.1, 0.05, 0.2), "−0.10");
        assert_eq!(tick(0.0, 2e-12, 1e-11), "0");
        assert_eq!(tick(1e-11, 2e-12, 1e-11), "10⁻¹¹");
        assert_eq!(tick(1.2e-11, 2e-12, 1.2e-11), "1.2×10⁻¹¹");
        assert_eq!(tick(5e12, 5e12, 1e13), "5×10¹²");
    }
}
