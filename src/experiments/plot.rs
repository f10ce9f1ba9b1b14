//! Bar charts, as SVG and as text.

use std::fmt::Write;

use plotters::coord::Shift;
use plotters::prelude::*;

use crate::failure::Failure;

const SIZE: (u32, u32) = (860, 520);
/// Distinct also in grey (Okabe and Ito).
const COLOURS: [RGBColor; 5] = [
    RGBColor(0, 114, 178),
    RGBColor(230, 159, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(86, 180, 233),
];
/// Part of a category's width that its bars take.
const FILLED: f64 = 0.7;
/// Characters of a line of notes.
const NOTES_WIDTH: usize = 125;

/// A chart: one value for each category and series.
pub struct Chart {
    /// Its title.
    pub title: String,
    /// What values are.
    pub unit: String,
    /// Decimals of values.
    pub decimals: usize,
    /// Whether series stand on top of each other, or side by side.
    pub stacked: bool,
    /// Names along the axis.
    pub categories: Vec<String>,
    /// The values.
    pub series: Vec<Series>,
    /// What a reader must know.
    pub notes: String,
}

/// Values of one kind.
pub struct Series {
    /// The kind.
    pub name: String,
    /// By category.
    pub values: Vec<f64>,
}

/// A bar: its left and right, its bottom and top.
type Bar = [(f64, f64); 2];

impl Chart {
    /// As a table.
    pub fn text(&self) -> String {
        let mut out = format!("{} ({})\n", self.title, self.unit);
        let width = self.series.iter().map(|series| series.name.len()).max();
        let width = width.unwrap_or(0).max(8) + 2;
        let columns: Vec<usize> = self.categories.iter().map(|c| c.len().max(8) + 2).collect();
        let _ = write!(out, "  {:<width$}", "");
        for (category, column) in self.categories.iter().zip(&columns) {
            let _ = write!(out, "{category:>column$}");
        }
        out.push('\n');
        let mut row = |name: &str, values: &[f64]| {
            let _ = write!(out, "  {name:<width$}");
            for (value, column) in values.iter().zip(&columns) {
                let _ = write!(out, "{value:>column$.decimals$}", decimals = self.decimals);
            }
            out.push('\n');
        };
        for series in &self.series {
            row(&series.name, &series.values);
        }
        if self.stacked {
            row("all", &self.totals());
        }
        for line in wrapped(&self.notes, NOTES_WIDTH.min(90)) {
            let _ = writeln!(out, "  {line}");
        }
        out
    }

    /// As a picture.
    pub fn svg(&self) -> Result<String, Failure> {
        let mut svg = String::new();
        let area = SVGBackend::with_string(&mut svg, SIZE).into_drawing_area();
        let drawn = self.draw(&area);
        drop(area);
        match drawn {
            Ok(()) => Ok(svg),
            Err(error) => Err(Failure::access(&self.title, error)),
        }
    }

    fn draw(
        &self,
        area: &DrawingArea<SVGBackend<'_>, Shift>,
    ) -> Result<(), DrawingAreaErrorKind<std::io::Error>> {
        area.fill(&WHITE)?;
        let notes = wrapped(&self.notes, NOTES_WIDTH);
        let (plot, foot) = area.split_vertically(SIZE.1 as i32 - 16 * notes.len() as i32 - 8);
        for (number, line) in notes.iter().enumerate() {
            let style = ("sans-serif", 12).into_font().color(&BLACK.mix(0.7));
            foot.draw(&Text::new(line.clone(), (16, 16 * number as i32), style))?;
        }
        let last = self.categories.len() as f64;
        let mut chart = ChartBuilder::on(&plot)
            .caption(&self.title, ("sans-serif", 18))
            .margin(12)
            .x_label_area_size(32)
            .y_label_area_size(72)
            .build_cartesian_2d(0.0..last, 0.0..self.top() * 1.15)?;
        chart
            .configure_mesh()
            .disable_x_mesh()
            .x_labels(self.categories.len() * 2 + 1)
            .x_label_formatter(&|x| self.category_at(*x))
            .y_label_formatter(&|y| format!("{y}"))
            .y_desc(&self.unit)
            .draw()?;
        for (number, series) in self.series.iter().enumerate() {
            let colour = COLOURS[number % COLOURS.len()];
            let bars = self.bars(number);
            let rectangles = bars.iter().map(|bar| Rectangle::new(*bar, colour.filled()));
            chart
                .draw_series(rectangles)?
                .label(&series.name)
                .legend(move |(x, y)| {
                    Rectangle::new([(x, y - 5), (x + 12, y + 5)], colour.filled())
                });
        }
        chart.draw_series(self.figures())?;
        chart
            .configure_series_labels()
            .position(SeriesLabelPosition::UpperRight)
            .background_style(WHITE.mix(0.85))
            .border_style(BLACK.mix(0.3))
            .draw()
    }

    /// The name of the category whose middle is at `x`.
    fn category_at(&self, x: f64) -> String {
        let is_middle = (x.fract() - 0.5).abs() < 1e-6;
        let name = self.categories.get(x as usize).filter(|_| is_middle);
        name.cloned().unwrap_or_default()
    }

    /// The bars of a series.
    fn bars(&self, series: usize) -> Vec<Bar> {
        let beside = if self.stacked { 1 } else { self.series.len() };
        let width = FILLED / beside as f64;
        let place = if self.stacked { 0 } else { series };
        let bar = |(category, value): (usize, &f64)| {
            let bottom = match self.stacked {
                true => self.series[..series]
                    .iter()
                    .map(|below| below.values[category])
                    .sum(),
                false => 0.0,
            };
            let left = category as f64 + (1.0 - FILLED) / 2.0 + place as f64 * width;
            [(left, bottom), (left + width, bottom + value)]
        };
        self.series[series]
            .values
            .iter()
            .enumerate()
            .map(bar)
            .collect()
    }

    /// Values above bars.
    fn figures(&self) -> Vec<Text<'static, (f64, f64), String>> {
        let style = || ("sans-serif", 12).into_font();
        let values: Vec<(f64, f64, f64)> = if self.stacked {
            let totals = self.totals().into_iter().enumerate();
            totals
                .map(|(i, total)| (i as f64 + 0.4, total, total))
                .collect()
        } else {
            let bars = (0..self.series.len()).flat_map(|series| self.bars(series));
            bars.map(|[(left, _), (_, top)]| (left, top, top)).collect()
        };
        let lift = self.top() * 0.035;
        let text = |(x, y, value): (f64, f64, f64)| {
            let value = format!("{value:.decimals$}", decimals = self.decimals);
            Text::new(value, (x, y + lift), style())
        };
        values.into_iter().map(text).collect()
    }

    fn totals(&self) -> Vec<f64> {
        let of = |category: usize| {
            self.series
                .iter()
                .filter_map(move |s| s.values.get(category))
        };
        (0..self.categories.len())
            .map(|category| of(category).sum())
            .collect()
    }

    /// The highest point.
    fn top(&self) -> f64 {
        let single = self
            .series
            .iter()
            .flat_map(|series| series.values.iter().copied());
        let highest = match self.stacked {
            true => self.totals().into_iter().fold(0.0, f64::max),
            false => single.fold(0.0, f64::max),
        };
        highest.max(1e-9)
    }
}

/// Lines of at most so many characters, if words are no longer.
fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.len() + 1 + word.len() <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chart(stacked: bool) -> Chart {
        let series = |name: &str, values: [f64; 2]| Series {
            name: name.to_owned(),
            values: values.to_vec(),
        };
        Chart {
            title: "Costs".to_owned(),
            unit: "cycles".to_owned(),
            decimals: 0,
            stacked,
            categories: vec!["native".to_owned(), "twin".to_owned()],
            series: vec![
                series("driver", [100.0, 200.0]),
                series("guest", [50.0, 60.0]),
            ],
            notes: "What a reader must know.".to_owned(),
        }
    }

    #[test]
    fn stacked_bars_stand_on_each_other() {
        let chart = chart(true);
        assert_eq!(chart.bars(1)[1].map(|(_, y)| y), [200.0, 260.0]);
        assert_eq!(chart.top(), 260.0);
        assert!(
            chart.text().contains("all              150       260"),
            "{}",
            chart.text()
        );
    }

    #[test]
    fn grouped_bars_stand_side_by_side() {
        let chart = chart(false);
        let [first, second] = [chart.bars(0)[0], chart.bars(1)[0]];
        assert_eq!(first[1].0, second[0].0);
        assert_eq!(chart.top(), 200.0);
    }

    #[test]
    fn the_picture_has_all_names() {
        let svg = chart(true).svg().expect("a picture");
        for part in [
            "<svg", "Costs", "native", "twin", "driver", "guest", "260", "reader",
        ] {
            assert!(svg.contains(part), "no {part} in {svg}");
        }
    }
}
