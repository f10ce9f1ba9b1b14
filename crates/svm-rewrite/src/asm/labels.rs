//! Labels: places in emitted code that code may refer to before they are known.

use super::Position;

/// A place in emitted code, in any section of the object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Label(pub u32);

/// Where every label is.
#[derive(Default)]
pub struct Labels {
    places: Vec<Option<(u16, Position)>>,
}

impl Labels {
    /// Labels `0..count`, none placed, one for each instruction. There is room for
    /// those of checks: about a quarter of the instructions have one, with two labels.
    pub fn new(count: usize) -> Labels {
        let mut places = Vec::with_capacity(count + count / 2);
        places.resize(count, None);
        Labels { places }
    }

    /// A new label.
    pub fn fresh(&mut self) -> Label {
        self.places.push(None);
        Label(self.places.len() as u32 - 1)
    }

    /// Places a label in a section.
    pub fn place(&mut self, label: Label, section: u16, at: Position) {
        self.places[label.0 as usize] = Some((section, at));
    }

    /// How many labels there are.
    pub fn count(&self) -> u32 {
        self.places.len() as u32
    }

    /// Section and position of a label, if it was placed.
    pub fn find(&self, label: Label) -> Option<(u16, Position)> {
        self.places[label.0 as usize]
    }

    /// Section and position of a label.
    ///
    /// # Panics
    /// If the label was never placed. Code that makes a label must place it.
    pub fn get(&self, label: Label) -> (u16, Position) {
        self.places[label.0 as usize].expect("every label is placed")
    }
}
