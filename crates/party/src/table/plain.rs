//! Arrow arrays of many types as arrays of one: numbers, whole numbers, text.
//!
//! Each function gives `None` for types, or values, that it cannot turn into what is asked without
//! making something else of them.

use arrow_array::cast::AsArray;
use arrow_array::types::{Date32Type, Float16Type, Float32Type, Float64Type, Int64Type};
use arrow_array::{
    Array, ArrayRef, Float64Array, Int64Array, PrimitiveArray, StringArray, UInt64Array,
    downcast_integer_array, downcast_run_array,
};
use arrow_buffer::ArrowNativeType;
use arrow_schema::DataType;
use arrow_select::take::take;

/// A dictionary or run-length encoded array as the values it stands for; others as they are.
pub(crate) fn plain(array: &ArrayRef) -> Option<ArrayRef> {
    if let Some(dictionary) = array.as_any_dictionary_opt() {
        return take(dictionary.values(), dictionary.keys(), None).ok();
    }
    if !matches!(array.data_type(), DataType::RunEndEncoded(..)) {
        return Some(array.clone());
    }
    let array: &dyn Array = array;
    downcast_run_array!(
        array => {
            let places = (0..array.len()).map(|at| array.get_physical_index(at) as u64);
            take(array.values(), &UInt64Array::from_iter_values(places), None).ok()
        },
        _ => None
    )
}

/// Integers and floats as the nearest doubles.
pub(crate) fn doubles(array: &ArrayRef) -> Option<Float64Array> {
    let array: &dyn Array = array;
    downcast_integer_array!(
        // One expression for types that fit and types that do not.
        array => Some(array.unary(#[allow(clippy::cast_lossless)] |value| value as f64)),
        DataType::Float16 => Some(array.as_primitive::<Float16Type>().unary(f64::from)),
        DataType::Float32 => Some(array.as_primitive::<Float32Type>().unary(f64::from)),
        DataType::Float64 => Some(array.as_primitive::<Float64Type>().clone()),
        _ => None
    )
}

/// Integers within 64 signed bits.
pub(crate) fn integers(array: &ArrayRef) -> Option<Int64Array> {
    if let Some(same) = array.as_primitive_opt::<Int64Type>() {
        return Some(same.clone());
    }
    let array: &dyn Array = array;
    downcast_integer_array!(
        array => within(array.iter().map(|value| value.map(ArrowNativeType::to_i64))),
        _ => None
    )
}

/// Text that has only whole numbers within 64 signed bits.
pub(crate) fn parsed(texts: &StringArray) -> Option<Int64Array> {
    within(texts.iter().map(|text| text.map(|text| text.trim_ascii().parse().ok())))
}

/// Values that may be missing, unless one does not fit.
fn within(values: impl Iterator<Item = Option<Option<i64>>>) -> Option<PrimitiveArray<Int64Type>> {
    values.map(|value| value.map_or(Some(None), |known| known.map(Some))).collect()
}

/// Text, integers in plain decimal, and booleans as `true` and `false`.
pub(crate) fn texts(array: &ArrayRef) -> Option<StringArray> {
    match array.data_type() {
        DataType::Null => return Some(StringArray::new_null(array.len())),
        DataType::Utf8 => return Some(array.as_string().clone()),
        // A slice of a long column may lie where the offsets of plain text do not reach.
        DataType::LargeUtf8 => return Some(array.as_string::<i64>().iter().collect()),
        DataType::Utf8View => return Some(array.as_string_view().iter().collect()),
        DataType::Boolean => {
            let name = |value| if value { "true" } else { "false" };
            return Some(array.as_boolean().iter().map(|value| value.map(name)).collect());
        }
        _ => {}
    }
    let array: &dyn Array = array;
    downcast_integer_array!(
        array => Some(array.iter().map(|value| value.map(|value| value.to_string())).collect()),
        _ => None
    )
}

/// Dates as `YYYY-MM-DD`.
pub(crate) fn dates(array: &ArrayRef) -> Option<StringArray> {
    let days = array.as_primitive_opt::<Date32Type>()?;
    let text = |day: Option<i32>| match day {
        Some(day) => Date32Type::to_naive_date_opt(day).map(|date| Some(date.to_string())),
        None => Some(None),
    };
    days.iter().map(text).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::types::{ArrowPrimitiveType, Int8Type, Int16Type};
    use arrow_array::{
        BooleanArray, DictionaryArray, Float16Array, Float32Array, Int16Array, LargeStringArray, RunArray,
        StringViewArray,
    };

    use super::*;

    fn array(array: impl Array + 'static) -> ArrayRef {
        Arc::new(array)
    }

    #[test]
    fn encoded_arrays_are_the_values_they_stand_for() {
        let dictionary: DictionaryArray<Int8Type> =
            [Some("b"), None, Some("a"), Some("b")].into_iter().collect();
        let shown = |array: &ArrayRef| -> Vec<Option<String>> {
            let texts = texts(&plain(array).unwrap()).unwrap();
            texts.iter().map(|text| text.map(str::to_owned)).collect()
        };
        let owned =
            |texts: &[Option<&str>]| texts.iter().map(|text| text.map(str::to_owned)).collect::<Vec<_>>();
        let dictionary = array(dictionary);
        assert_eq!(shown(&dictionary), owned(&[Some("b"), None, Some("a"), Some("b")]));
        assert_eq!(shown(&dictionary.slice(1, 2)), owned(&[None, Some("a")]));
        let ends = Int16Array::from(vec![2, 3, 6]);
        let values = StringArray::from(vec![Some("x"), None, Some("y")]);
        let runs = array(RunArray::<Int16Type>::try_new(&ends, &values).unwrap());
        assert_eq!(shown(&runs), owned(&[Some("x"), Some("x"), None, Some("y"), Some("y"), Some("y")]));
        assert_eq!(shown(&runs.slice(1, 3)), owned(&[Some("x"), None, Some("y")]));
    }

    #[test]
    fn dates_are_written_by_year_month_and_day() {
        let days = array(arrow_array::Date32Array::from(vec![Some(0), None, Some(6_364), Some(-1)]));
        let texts = dates(&days).unwrap();
        let expected = [Some("1970-01-01"), None, Some("1987-06-05"), Some("1969-12-31")];
        assert!(texts.iter().eq(expected));
        assert!(dates(&array(Int16Array::from(vec![1]))).is_none());
    }

    #[test]
    fn numbers_of_every_width_become_the_nearest_doubles() {
        let half = <Float16Type as ArrowPrimitiveType>::Native::from_f32;
        let halves = array(Float16Array::from_iter_values([1.5, -0.25].map(half)));
        assert_eq!(doubles(&halves).unwrap().values()[..], [1.5, -0.25]);
        let singles = array(Float32Array::from(vec![Some(0.1), None]));
        let singles = doubles(&singles).unwrap();
        assert!(singles.value(0).to_bits() == f64::from(0.1_f32).to_bits() && singles.is_null(1));
        for (value, expected) in
            [(u64::MAX, 18_446_744_073_709_551_616.0), ((1 << 53) + 1, 9_007_199_254_740_992.0)]
        {
            let large = array(UInt64Array::from(vec![value]));
            assert_eq!(doubles(&large).unwrap().value(0).to_bits(), f64::to_bits(expected));
        }
        assert!(doubles(&array(StringArray::from(vec!["1"]))).is_none());
    }

    #[test]
    fn whole_numbers_are_kept_or_refused() {
        let some = array(UInt64Array::from(vec![Some(7), None]));
        assert_eq!(integers(&some).unwrap(), Int64Array::from(vec![Some(7), None]));
        assert!(integers(&array(UInt64Array::from(vec![1 << 63]))).is_none());
        assert!(integers(&array(Float64Array::from(vec![1.0]))).is_none());
        let texts = StringArray::from(vec![Some("-12"), None]);
        assert_eq!(parsed(&texts).unwrap(), Int64Array::from(vec![Some(-12), None]));
        for other in ["", "1.5", "9223372036854775808"] {
            assert!(parsed(&StringArray::from(vec![other])).is_none(), "{other:?}");
        }
    }

    #[test]
    fn everything_that_levels_may_be_has_its_text() {
        let yes = StringArray::from(vec![Some("yes"), None]);
        assert_eq!(texts(&array(LargeStringArray::from(vec![Some("yes"), None]))).unwrap(), yes);
        assert_eq!(texts(&array(StringViewArray::from(vec![Some("yes"), None]))).unwrap(), yes);
        let truths = array(BooleanArray::from(vec![Some(true), Some(false), None]));
        assert_eq!(texts(&truths).unwrap(), StringArray::from(vec![Some("true"), Some("false"), None]));
        let numbers = array(Int64Array::from(vec![Some(i64::MIN), None]));
        assert_eq!(texts(&numbers).unwrap(), StringArray::from(vec![Some("-9223372036854775808"), None]));
        assert!(texts(&array(Float64Array::from(vec![1.0]))).is_none());
    }
}
