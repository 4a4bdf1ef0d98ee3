//! Reading a study part by part, from TOML or JSON: what cannot be read is noted, and the rest is
//! read all the same.

use std::collections::BTreeMap;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::dates::day_of;
use super::mistakes::Mistakes;
use crate::Error;
use crate::place::{Key, Place, Step};
use crate::remedy::{Problem, Remedy, Shape};

/// How alike two keys are, from 0 to 1, if one is to be taken for a misspelling of the other.
const ALIKE: f64 = 0.7;

/// A part of a study as it was written, whatever it says.
pub(super) struct Node {
    /// The line where it begins, if it stands in a text.
    line: Option<usize>,
    value: Value,
}

enum Value {
    Text(String),
    Whole(u64),
    Number(f64),
    /// A day, counted from 1970.
    Date(f64),
    List(Vec<Node>),
    Table(Vec<(String, Node)>),
    /// No study has it: this is what it is.
    Foreign(&'static str),
}

const TOO_LARGE: Value = Value::Foreign("too large a number");

impl Node {
    pub(super) fn from_toml(text: &str) -> Result<Self, Error> {
        let ends: Vec<usize> = text.match_indices('\n').map(|(at, _)| at).collect();
        let line = |at: usize| ends.partition_point(|&end| end < at) + 1;
        let table = DeTable::parse(text).map_err(|error| {
            // Only position and reason: the file may be a private table that was named by mistake.
            let line = error.span().map_or(1, |span| line(span.start));
            Error::StudySyntax { detail: format!("line {line}: {}", error.message()) }
        })?;
        Ok(Self { line: None, value: toml_table(table.get_ref(), &line) })
    }

    pub(super) fn from_json(value: &serde_json::Value) -> Self {
        use serde_json::Value as Json;
        let value = match value {
            Json::Null => Value::Foreign("nothing"),
            Json::Bool(_) => Value::Foreign("true or false"),
            Json::Number(number) => match (number.as_u64(), number.as_f64()) {
                (Some(whole), _) => Value::Whole(whole),
                (None, Some(number)) => Value::Number(number),
                (None, None) => TOO_LARGE,
            },
            Json::String(text) => Value::Text(text.clone()),
            Json::Array(items) => Value::List(items.iter().map(Self::from_json).collect()),
            Json::Object(entries) => {
                let given = entries.iter().filter(|(_, value)| !value.is_null());
                Value::Table(given.map(|(key, value)| (key.clone(), Self::from_json(value))).collect())
            }
        };
        Self { line: None, value }
    }

    pub(super) fn get(&self, key: &str) -> Option<&Self> {
        let Value::Table(entries) = &self.value else { return None };
        entries.iter().find(|(one, _)| one == key).map(|(_, node)| node)
    }

    /// The day that it names, if it is a date: in TOML with quotes or without.
    pub(super) fn day(&self) -> Option<f64> {
        match &self.value {
            Value::Date(day) => Some(*day),
            Value::Text(text) => day_of(text),
            _ => None,
        }
    }

    /// The line of a place, or of the part that would hold it.
    pub(super) fn line_of(&self, place: &Place) -> Option<usize> {
        let mut node = self;
        for step in place.steps() {
            let next = match (step, &node.value) {
                (Step::Key(key), _) => node.get(key.name()),
                (Step::Other(key), _) => node.get(key),
                (Step::Item { at, .. }, Value::List(items)) => items.get(*at),
                (Step::Item { .. }, _) => None,
            };
            let Some(next) = next else { break };
            node = next;
        }
        node.line
    }

    /// What to write instead of a number as people write it elsewhere: 5%, or 0,5.
    fn meant(&self, wanted: Shape) -> Option<Problem> {
        let (Value::Text(text), Shape::Number | Shape::Bound) = (&self.value, wanted) else { return None };
        let number = |text: &str| text.trim().parse::<f64>().ok().filter(|number| number.is_finite());
        if let Some(percent) = text.trim().strip_suffix('%') {
            let percent = percent.trim().replacen(',', ".", 1);
            // Shifted as decimals, so that 0.1% is 0.001 and nothing near it.
            let (percent, share) = (number(&percent)?, number(&format!("{percent}e-2"))?);
            let counted = match wanted {
                Shape::Bound => format!(", or {percent} if the column is counted in percent"),
                _ => String::new(),
            };
            return Some(Problem::from(format!("is a percentage; write {share}{counted}")));
        }
        let point = text.replacen(',', ".", 1);
        let number = number(&point).filter(|_| text.contains(','))?;
        Some(Problem::from(format!("is written with a comma; write {number}")))
    }

    /// What it is, for people.
    fn kind(&self, wanted: Shape) -> String {
        let kind = match &self.value {
            Value::Text(text) if text.is_empty() => "empty",
            Value::Text(text) if matches!(wanted, Shape::Word(_)) => return format!("{text:?}"),
            Value::Text(_) => "text",
            Value::Whole(_) => "a whole number",
            Value::Number(number) if *number < 0.0 => "a number below 0",
            Value::Number(_) => "a number with a decimal point",
            Value::Date(_) => "a date",
            Value::List(_) => "a list",
            Value::Table(_) => "a section",
            Value::Foreign(kind) => kind,
        };
        kind.to_owned()
    }
}

fn toml_table(table: &DeTable<'_>, line: &impl Fn(usize) -> usize) -> Value {
    let entry = |(key, value): (&Spanned<_>, &Spanned<DeValue<'_>>)| {
        let node = Node { line: Some(line(key.span().start)), value: toml_value(value.get_ref(), line) };
        (AsRef::<str>::as_ref(key.get_ref()).to_owned(), node)
    };
    Value::Table(table.iter().map(entry).collect())
}

fn toml_value(value: &DeValue<'_>, line: &impl Fn(usize) -> usize) -> Value {
    match value {
        DeValue::String(text) => Value::Text(text.as_ref().to_owned()),
        DeValue::Integer(digits) => {
            let (text, radix) = (digits.as_str(), digits.radix());
            match (u64::from_str_radix(text, radix), i64::from_str_radix(text, radix)) {
                (Ok(number), _) => Value::Whole(number),
                (_, Ok(number)) => Value::Number(number as f64),
                _ => TOO_LARGE,
            }
        }
        DeValue::Float(float) => match float.as_str().parse::<f64>() {
            Ok(number) if number.is_finite() || !float.as_str().contains(|c: char| c.is_ascii_digit()) => {
                Value::Number(number)
            }
            _ => TOO_LARGE,
        },
        DeValue::Boolean(_) => Value::Foreign("true or false"),
        DeValue::Datetime(time) => match day_of(&time.to_string()) {
            Some(day) => Value::Date(day),
            None => Value::Foreign("a time"),
        },
        DeValue::Array(items) => {
            let item = |item: &Spanned<DeValue<'_>>| Node {
                line: Some(line(item.span().start)),
                value: toml_value(item.get_ref(), line),
            };
            Value::List(items.iter().map(item).collect())
        }
        DeValue::Table(table) => toml_table(table, line),
    }
}

/// What can be read from a part of a study.
pub(super) trait FromNode: Sized {
    /// How it is written.
    const SHAPE: Shape;

    /// What the node says; nothing if it does not have the shape.
    fn from_node(node: &Node, reader: &mut Reader) -> Option<Self>;
}

impl FromNode for String {
    const SHAPE: Shape = Shape::Text;

    fn from_node(node: &Node, _: &mut Reader) -> Option<Self> {
        if let Value::Text(text) = &node.value { Some(text.clone()) } else { None }
    }
}

impl FromNode for u64 {
    const SHAPE: Shape = Shape::Whole;

    fn from_node(node: &Node, _: &mut Reader) -> Option<Self> {
        if let Value::Whole(number) = node.value { Some(number) } else { None }
    }
}

impl FromNode for u32 {
    const SHAPE: Shape = Shape::Whole;

    fn from_node(node: &Node, reader: &mut Reader) -> Option<Self> {
        u64::from_node(node, reader)?.try_into().ok()
    }
}

impl FromNode for f64 {
    const SHAPE: Shape = Shape::Number;

    fn from_node(node: &Node, _: &mut Reader) -> Option<Self> {
        match node.value {
            Value::Number(number) => Some(number),
            Value::Whole(number) => Some(number as Self),
            _ => None,
        }
    }
}

impl<T: FromNode + Default> FromNode for Vec<T> {
    const SHAPE: Shape = Shape::List(&T::SHAPE);

    fn from_node(node: &Node, reader: &mut Reader) -> Option<Self> {
        let Value::List(items) = &node.value else { return None };
        let read = |(at, item): (usize, &Node)| {
            let name = item.get(Key::Name.name()).and_then(|name| String::from_node(name, reader));
            let place = reader.place.item(at, name.as_deref());
            reader.read(item, place).unwrap_or_default()
        };
        Some(items.iter().enumerate().map(read).collect())
    }
}

impl FromNode for BTreeMap<String, u64> {
    const SHAPE: Shape = Shape::Section("sealed.party.sigma");

    fn from_node(node: &Node, reader: &mut Reader) -> Option<Self> {
        let Value::Table(entries) = &node.value else { return None };
        let read = |(key, node): &(String, Node)| {
            let place = reader.place.then(Step::Other(key.clone()));
            (key.clone(), reader.read(node, place).unwrap_or_default())
        };
        Some(entries.iter().map(read).collect())
    }
}

impl<T: FromNode> FromNode for Box<T> {
    const SHAPE: Shape = T::SHAPE;

    fn from_node(node: &Node, reader: &mut Reader) -> Option<Self> {
        T::from_node(node, reader).map(Self::new)
    }
}

/// Reads parts of a study and notes what is wrong with them.
#[derive(Default)]
pub(super) struct Reader {
    /// Of the part that is being read.
    place: Place,
    pub(super) mistakes: Mistakes,
}

impl Reader {
    /// What the node at a place says, if it has the right shape.
    pub(super) fn read<T: FromNode>(&mut self, node: &Node, place: Place) -> Option<T> {
        let outer = std::mem::replace(&mut self.place, place);
        let read = T::from_node(node, self);
        let place = std::mem::replace(&mut self.place, outer);
        if read.is_none() {
            let problem = node.meant(T::SHAPE).unwrap_or_else(|| {
                Problem::with(format!("is {}", node.kind(T::SHAPE)), Remedy::Write(T::SHAPE))
            });
            self.mistakes.note(place, problem);
        }
        read
    }

    /// What a section says, key by key.
    pub(super) fn section<T>(&mut self, node: &Node, read: impl FnOnce(&mut Section<'_>) -> T) -> Option<T> {
        let Value::Table(entries) = &node.value else { return None };
        let mut section = Section { node, known: Vec::new(), missing: Vec::new(), reader: self };
        let said = read(&mut section);
        section.finish(entries);
        Some(said)
    }
}

/// A section that is being read.
pub(super) struct Section<'a> {
    node: &'a Node,
    /// Keys that were asked for.
    known: Vec<Key>,
    /// Keys among them that must be there and are not.
    missing: Vec<(Key, Shape)>,
    reader: &'a mut Reader,
}

impl Section<'_> {
    /// What a key says, if it is there.
    pub(super) fn optional<T: FromNode>(&mut self, key: Key) -> Option<T> {
        self.known.push(key);
        let node = self.node.get(key.name())?;
        let place = self.reader.place.key(key);
        self.reader.read(node, place)
    }

    /// What a key says that must be there.
    pub(super) fn required<T: FromNode>(&mut self, key: Key) -> Option<T> {
        if self.node.get(key.name()).is_none() {
            self.missing.push((key, T::SHAPE));
        }
        self.optional(key)
    }

    /// Notes the keys that do not belong here, and those that are missing and were not misspelt.
    fn finish(mut self, entries: &[(String, Node)]) {
        let place = self.reader.place.clone();
        for (word, _) in entries.iter().filter(|(word, _)| self.known.iter().all(|key| key.name() != word)) {
            let likeness = |key: &&Key| strsim::jaro(key.name(), &word.to_lowercase());
            let nearest = self.known.iter().max_by(|one, other| likeness(one).total_cmp(&likeness(other)));
            let advice = if let Some(meant) = nearest.filter(|key| likeness(key) > ALIKE) {
                self.missing.retain(|(key, _)| key != meant);
                format!("did you mean {}?", meant.name())
            } else {
                let names: Vec<&str> = self.known.iter().map(|key| key.name()).collect();
                format!("the keys here are {}", names.join(", "))
            };
            let problem = format!("is not a key that belongs here; {advice}");
            self.reader.mistakes.note(place.then(Step::Other(word.clone())), problem);
        }
        for (key, shape) in self.missing {
            self.reader.mistakes.note(place.key(key), Problem::with("is missing", Remedy::Write(shape)));
        }
    }
}
