//! Tables with aligned columns that fit the terminal.
//!
//! If a table is too wide, the columns of [`Table::shortens`] get shorter cells that end with `…`.
//! If that is not enough, the columns of [`Table::drops`] disappear, the first of them first. An
//! output that is not a terminal has no limit.

use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr};

use super::terminal;

/// The smallest width of a column with shortened cells.
const SHORTEST: usize = 12;

/// The space between two columns.
const GAP: usize = 2;

/// The mark at the end of a shortened cell, one column wide.
const CUT: char = '…';

/// The alignment of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Align {
    Left,
    Right,
}

/// A table with a heading and columns of minimum width.
#[derive(Debug)]
pub(crate) struct Table {
    columns: Vec<(&'static str, Align)>,
    rows: Vec<Vec<String>>,
    shortened: &'static [&'static str],
    dropped: &'static [&'static str],
}

/// The visible columns of a table, and the widths of all columns.
#[derive(Debug, Clone)]
pub(super) struct Layout {
    shown: Vec<usize>,
    widths: Vec<usize>,
}

impl Layout {
    /// Returns the width of the whole table.
    fn total(&self) -> usize {
        let widths: usize = self.shown.iter().map(|column| self.widths[*column]).sum();
        widths + GAP * self.shown.len().saturating_sub(1)
    }
}

/// A table that arrives in pages. Only the first page has a heading.
#[derive(Debug, Default)]
pub(crate) struct Pages(Option<Layout>);

impl Pages {
    /// Renders the next page for the terminal. Empty for a page without rows.
    pub(crate) fn page(&mut self, table: &Table) -> String {
        if table.rows.is_empty() {
            return String::new();
        }
        if let Some(layout) = &self.0 {
            return table.carry_on(layout.clone(), terminal::width());
        }
        let (text, layout) = table.begin(terminal::width());
        self.0 = Some(layout);
        text
    }
}

impl Table {
    pub(crate) fn new(columns: impl IntoIterator<Item = (&'static str, Align)>) -> Self {
        Self {
            columns: columns.into_iter().collect(),
            rows: Vec::new(),
            shortened: &[],
            dropped: &[],
        }
    }

    /// Allows shorter cells in the columns with these titles.
    #[must_use]
    pub(crate) fn shortens(mut self, titles: &'static [&'static str]) -> Self {
        self.shortened = titles;
        self
    }

    /// Allows to leave out the columns with these titles, in this order.
    #[must_use]
    pub(crate) fn drops(mut self, titles: &'static [&'static str]) -> Self {
        self.dropped = titles;
        self
    }

    /// Adds a row with one cell per column.
    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push(cells.into_iter().collect());
    }

    /// Renders the heading and all rows for the terminal.
    pub(crate) fn render(&self) -> String {
        self.begin(terminal::width()).0
    }

    /// Renders the heading and all rows within a width. The layout is for further pages.
    pub(super) fn begin(&self, width: Option<usize>) -> (String, Layout) {
        let heading: Vec<&str> = self.columns.iter().map(|(title, _)| *title).collect();
        let mut widths: Vec<usize> = heading.iter().map(|title| title.width()).collect();
        self.widen(&mut widths);

        let shown = (0..self.columns.len()).collect();
        let layout = self.fit(Layout { shown, widths }, width);
        (self.line(&heading, &layout) + &self.lines(&layout), layout)
    }

    /// Renders the rows without a heading, to continue a table with this layout.
    pub(super) fn carry_on(&self, mut layout: Layout, width: Option<usize>) -> String {
        self.widen(&mut layout.widths);
        if let Some(width) = width {
            self.shorten(&mut layout, width);
        }
        self.lines(&layout)
    }

    /// Makes each column as wide as its widest cell.
    fn widen(&self, widths: &mut [usize]) {
        for row in &self.rows {
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = (*width).max(cell.width());
            }
        }
    }

    /// Shortens cells, then drops columns, until the table fits.
    fn fit(&self, full: Layout, width: Option<usize>) -> Layout {
        let Some(width) = width else { return full };
        let mut layout = full.clone();
        self.shorten(&mut layout, width);

        for title in self.dropped {
            if layout.total() <= width {
                break;
            }
            let mut shown = layout.shown;
            shown.retain(|column| self.columns[*column].0 != *title);
            layout = Layout { shown, widths: full.widths.clone() };
            self.shorten(&mut layout, width);
        }
        layout
    }

    /// Takes columns from the widest cells first.
    fn shorten(&self, layout: &mut Layout, width: usize) {
        let is_flexible = |column: &usize| self.shortened.contains(&self.columns[*column].0);
        let flexible: Vec<usize> = layout.shown.iter().copied().filter(is_flexible).collect();
        while layout.total() > width {
            let widest = flexible.iter().copied().max_by_key(|column| layout.widths[*column]);
            match widest.filter(|column| layout.widths[*column] > SHORTEST) {
                Some(column) => layout.widths[column] -= 1,
                None => return,
            }
        }
    }

    fn lines(&self, layout: &Layout) -> String {
        let rows = self.rows.iter().map(|row| row.iter().map(String::as_str).collect::<Vec<_>>());
        rows.map(|cells| self.line(&cells, layout)).collect()
    }

    fn line(&self, cells: &[&str], layout: &Layout) -> String {
        let mut line = String::new();
        for &column in &layout.shown {
            let (width, (_, align)) = (layout.widths[column], self.columns[column]);
            let cell = shortened(cells[column], width);
            // Not `{:<width$}`, which counts characters. A wide character needs two columns.
            let filling = " ".repeat(width.saturating_sub(cell.width()) + GAP);
            match align {
                Align::Left => line.extend([cell.as_str(), filling.as_str()]),
                Align::Right => line.extend([&filling[GAP..], cell.as_str(), &filling[..GAP]]),
            }
        }
        format!("{}\n", line.trim_end())
    }
}

/// Shortens a text to a width.
fn shortened(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_owned();
    }

    let mut short = String::new();
    let mut left = width.saturating_sub(1);
    for c in text.chars() {
        let needed = c.width().unwrap_or(0);
        if needed > left {
            break;
        }
        left -= needed;
        short.push(c);
    }
    short.truncate(short.trim_end().len());
    short.push(CUT);
    short
}

#[cfg(test)]
mod tests {
    use super::*;

    fn people() -> Table {
        let columns = [("ID", Align::Left), ("NAME", Align::Left), ("AGE", Align::Right)];
        let mut table = Table::new(columns).shortens(&["NAME"]).drops(&["AGE", "NAME"]);
        table.row(["one".to_owned(), "Ada, Countess of Lovelace".to_owned(), "36".to_owned()]);
        table.row(["two".to_owned(), "Bob".to_owned(), "7".to_owned()]);
        table
    }

    fn within(width: usize) -> String {
        people().begin(Some(width)).0
    }

    #[test]
    fn wide_characters_keep_the_columns_aligned() {
        let mut table = Table::new([("NAME", Align::Left), ("SIZE", Align::Right)]);
        table.row(["写真.jpg".to_owned(), "1 B".to_owned()]);
        table.row(["photo-1.jpg".to_owned(), "12.0 MiB".to_owned()]);
        assert_eq!(
            table.begin(None).0,
            "NAME             SIZE\n写真.jpg          1 B\nphoto-1.jpg  12.0 MiB\n"
        );
    }

    #[test]
    fn a_table_that_fits_is_whole() {
        let whole = "ID   NAME                       AGE\n\
                     one  Ada, Countess of Lovelace   36\n\
                     two  Bob                          7\n";
        assert_eq!(people().begin(None).0, whole);
        assert_eq!(within(35), whole);
    }

    #[test]
    fn names_are_shortened_before_columns_are_dropped_in_order() {
        assert_eq!(
            within(24),
            "ID   NAME            AGE\none  Ada, Countess…   36\ntwo  Bob               7\n"
        );
        assert_eq!(within(20), "ID   NAME\none  Ada, Countess…\ntwo  Bob\n");
        assert_eq!(within(16), "ID\none\ntwo\n");
        assert_eq!(within(1), "ID\none\ntwo\n", "the last column stays");
    }

    #[test]
    fn a_further_page_has_the_columns_of_the_first() {
        let (_, layout) = people().begin(Some(20));
        let mut more = Table::new(people().columns).shortens(&["NAME"]).drops(&["AGE"]);
        more.row(["three".to_owned(), "Charles Babbage".to_owned(), "79".to_owned()]);
        assert_eq!(more.carry_on(layout.clone(), Some(20)), "three  Charles Babb…\n");
        assert_eq!(more.carry_on(layout, None), "three  Charles Babbage\n");
    }

    #[test]
    fn a_cut_never_splits_a_wide_character() {
        assert_eq!(shortened("写真写真", 8), "写真写真");
        assert_eq!(shortened("写真写真", 7), "写真写…");
        assert_eq!(shortened("写真写真", 6), "写真…");
    }
}
