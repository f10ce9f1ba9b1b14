//! Bar charts, as SVG and as text.

use std::fmt::Write;

use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use command_line::failure::Failure;
use command_line::text::wrap;

const SIZE: (u32, u32) = (860, 520);
/// Distinct also in grey (Okabe and Ito).
const COLOURS: [RGBColor; 7] = [
    RGBColor(0, 114, 178),
    RGBColor(230, 159, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(86, 180, 233),
    RGBColor(213, 94, 0),
    RGBColor(0, 0, 0),
];
/// Which of these colours need white letters on them.
const DARK: [bool; 7] = [true, false, true, false, false, true, true];
/// How much higher the axis is than the highest point, with up to three series: room for the
/// legend.
const HEADROOM: f64 = 1.2;
/// The same for each further series.
const LEGEND_LINE: f64 = 0.05;
/// Part of a category's width that its bars take.
const FILLED: f64 = 0.7;
/// Characters of a line of notes below a picture.
const NOTES_WIDTH: usize = 125;
/// Columns of a line of notes below a table.
const COLUMNS: usize = 92;

/// A chart: one value for each category and series.
pub struct Chart {
    pub title: String,
    /// The unit of values.
    pub unit: String,
    /// Decimals of values.
    pub decimals: usize,
    /// How heights stand for values.
    pub scale: Scale,
    /// Whether series stand on top of each other, or side by side.
    pub stacked: bool,
    /// What the categories are.
    pub axis: String,
    /// Names along the axis.
    pub categories: Vec<String>,
    pub series: Vec<Series>,
    /// Notes for the reader.
    pub notes: String,
}

/// Values of one kind.
pub struct Series {
    pub name: String,
    /// By category. Side by side, 0 is a value that is not known.
    pub values: Vec<f64>,
    /// By category too, if it is known: most values lie between these.
    pub spread: Vec<(f64, f64)>,
}

impl Series {
    /// Of values that do not spread.
    pub fn exact(name: &str, values: Vec<f64>) -> Series {
        Series {
            name: name.to_owned(),
            values,
            spread: Vec::new(),
        }
    }
}

/// The scale of heights.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// Twice as high is twice as much.
    Linear,
    /// A step higher is ten times as much. Not for stacked bars, which have no
    /// meaning then.
    Logarithmic,
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
                let _ = write!(out, "{:>column$}", self.figure(*value));
            }
            out.push('\n');
        };
        for series in &self.series {
            row(&series.name, &series.values);
        }
        if self.stacked {
            row("all", &self.totals());
        }
        for line in wrap(&self.notes, COLUMNS, "  ").lines() {
            let _ = writeln!(out, "{line}");
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
        let notes = wrap(&self.notes, NOTES_WIDTH, "");
        let notes: Vec<&str> = notes.lines().collect();
        let (plot, foot) = area.split_vertically(SIZE.1 as i32 - 16 * notes.len() as i32 - 8);
        for (number, line) in notes.iter().enumerate() {
            let style = ("sans-serif", 12).into_font().color(&BLACK.mix(0.7));
            foot.draw(&Text::new(*line, (16, 16 * number as i32), style))?;
        }
        let last = self.categories.len() as f64;
        let mut chart = ChartBuilder::on(&plot)
            .caption(&self.title, ("sans-serif", 18))
            .margin(12)
            .x_label_area_size(44)
            .y_label_area_size(72)
            .build_cartesian_2d(0.0..last, 0.0..self.top() * self.headroom())?;
        chart
            .configure_mesh()
            .disable_x_mesh()
            .light_line_style(TRANSPARENT)
            .x_labels(self.categories.len() * 2 + 1)
            .x_label_formatter(&|x| self.category_at(*x))
            .y_label_formatter(&|y| self.value_at(*y))
            .x_desc(&self.axis)
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
            chart.draw_series(self.whiskers(number))?;
            chart.draw_series(self.inner_figures(number))?;
        }
        chart.draw_series(self.figures())?;
        chart
            .configure_series_labels()
            .position(SeriesLabelPosition::UpperRight)
            .background_style(WHITE.mix(0.85))
            .border_style(BLACK.mix(0.3))
            .draw()
    }

    /// The height that stands for a value, in the axis's units.
    fn height(&self, value: f64) -> f64 {
        match self.scale {
            Scale::Linear => value,
            Scale::Logarithmic => (value / self.floor()).log10().max(0.0),
        }
    }

    /// The power of ten below all values: where a logarithmic axis begins.
    fn floor(&self) -> f64 {
        let values = self.series.iter().flat_map(|series| &series.values);
        let positive = values.copied().filter(|value| *value > 0.0);
        let least = positive.fold(f64::INFINITY, f64::min);
        match least.is_finite() {
            true => 10f64.powf(least.log10().floor()),
            false => 1.0,
        }
    }

    /// The axis's label at a height.
    fn value_at(&self, height: f64) -> String {
        match self.scale {
            Scale::Linear => format!("{height}"),
            Scale::Logarithmic if (height - height.round()).abs() > 1e-6 => String::new(),
            Scale::Logarithmic => {
                let power = self.floor().log10().round() + height.round();
                let decimals = (-power).max(0.0) as usize;
                format!("{:.decimals$}", 10f64.powf(power))
            }
        }
    }

    /// The name of the category whose middle is at `x`.
    fn category_at(&self, x: f64) -> String {
        let is_middle = (x.fract() - 0.5).abs() < 1e-6;
        let name = self.categories.get(x as usize).filter(|_| is_middle);
        name.cloned().unwrap_or_default()
    }

    fn bars(&self, series: usize) -> Vec<Bar> {
        let beside = if self.stacked { 1 } else { self.series.len() };
        let width = FILLED / beside as f64;
        let place = if self.stacked { 0 } else { series };
        let bar = |(category, value): (usize, &f64)| {
            let below: f64 = match self.stacked {
                true => {
                    let below = self.series[..series].iter();
                    below.map(|below| below.values[category]).sum()
                }
                false => 0.0,
            };
            let left = category as f64 + (1.0 - FILLED) / 2.0 + place as f64 * width;
            let bottom = if self.stacked {
                self.height(below)
            } else {
                0.0
            };
            [(left, bottom), (left + width, self.height(below + value))]
        };
        let values = self.series[series].values.iter();
        values.enumerate().map(bar).collect()
    }

    /// Lines between which most values lie.
    fn whiskers(&self, series: usize) -> Vec<PathElement<(f64, f64)>> {
        let bars = self.bars(series).into_iter();
        let spread = &self.series[series].spread;
        bars.zip(spread)
            .map(|(bar, (low, high))| {
                let x = middle(&bar);
                let ends = vec![(x, self.height(*low)), (x, self.height(*high))];
                PathElement::new(ends, BLACK.mix(0.7).stroke_width(2))
            })
            .collect()
    }

    fn figure(&self, value: f64) -> String {
        match !self.stacked && value == 0.0 {
            true => "-".to_owned(),
            false => format!("{value:.decimals$}", decimals = self.decimals),
        }
    }

    /// Values above bars, and above the lines of their spread.
    fn figures(&self) -> Vec<Text<'static, (f64, f64), String>> {
        let lift = self.top() * 0.01;
        let style = || text_style(VPos::Bottom, &BLACK);
        if self.stacked {
            let totals = self.totals().into_iter().enumerate();
            let text = |(i, total): (usize, f64)| {
                let at = (i as f64 + 0.5, self.height(total) + lift);
                Text::new(self.figure(total), at, style())
            };
            return totals.map(text).collect();
        }
        let all = self.series.iter().enumerate();
        let texts = all.flat_map(|(number, series)| {
            let bars = self.bars(number).into_iter().zip(&series.values);
            bars.enumerate().map(move |(category, (bar, value))| {
                let high = series.spread.get(category).map_or(0.0, |(_, high)| *high);
                let at = (middle(&bar), self.height(value.max(high)) + lift);
                Text::new(self.figure(*value), at, style())
            })
        });
        texts.collect()
    }

    /// The values in a stacked bar's parts, where these have room for them.
    fn inner_figures(&self, series: usize) -> Vec<Text<'static, (f64, f64), String>> {
        if !self.stacked {
            return Vec::new();
        }
        let colour = if DARK[series % DARK.len()] {
            &WHITE
        } else {
            &BLACK
        };
        let bars = self
            .bars(series)
            .into_iter()
            .zip(&self.series[series].values);
        let roomy = bars.filter(|(bar, _)| bar[1].1 - bar[0].1 > self.top() * 0.045);
        let text = |(bar, value): (Bar, &f64)| {
            let at = (middle(&bar), (bar[0].1 + bar[1].1) / 2.0);
            Text::new(self.figure(*value), at, text_style(VPos::Center, colour))
        };
        roomy.map(text).collect()
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

    fn headroom(&self) -> f64 {
        HEADROOM + LEGEND_LINE * self.series.len().saturating_sub(3) as f64
    }

    /// The highest point, in the axis's units.
    fn top(&self) -> f64 {
        let values = self.series.iter().flat_map(|series| {
            let spread = series.spread.iter().map(|(_, high)| *high);
            spread.chain(series.values.iter().copied())
        });
        let highest = match self.stacked {
            true => self.totals().into_iter().fold(0.0, f64::max),
            false => values.fold(0.0, f64::max),
        };
        self.height(highest).max(1e-9)
    }
}

fn middle(bar: &Bar) -> f64 {
    (bar[0].0 + bar[1].0) / 2.0
}

fn text_style(vertical: VPos, colour: &RGBColor) -> TextStyle<'static> {
    let style = ("sans-serif", 12).into_font().color(colour);
    style.pos(Pos::new(HPos::Center, vertical))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chart(stacked: bool) -> Chart {
        Chart {
            title: "Costs".to_owned(),
            unit: "cycles".to_owned(),
            decimals: 0,
            scale: Scale::Linear,
            stacked,
            axis: "path".to_owned(),
            categories: vec!["native".to_owned(), "twin".to_owned()],
            series: vec![
                Series::exact("driver", vec![100.0, 200.0]),
                Series::exact("guest", vec![50.0, 60.0]),
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
    fn ten_times_as_much_is_a_step_higher_on_a_logarithmic_axis() {
        let mut chart = chart(false);
        chart.scale = Scale::Logarithmic;
        chart.series = vec![Series::exact("rate", vec![25.0, 0.2])];
        assert_eq!(chart.floor(), 0.1);
        let heights: Vec<f64> = chart.bars(0).iter().map(|bar| bar[1].1).collect();
        assert!((heights[0] - 250f64.log10()).abs() < 1e-9, "{heights:?}");
        assert!((heights[1] - 2f64.log10()).abs() < 1e-9, "{heights:?}");
        let labels = [0.0, 1.0, 2.0, 2.5].map(|height| chart.value_at(height));
        assert_eq!(labels, ["0.1", "1", "10", ""]);
    }

    #[test]
    fn what_is_not_known_is_no_figure() {
        let mut chart = chart(false);
        chart.series[0].values[1] = 0.0;
        assert!(
            chart.text().contains("driver           100         -"),
            "{}",
            chart.text()
        );
        chart.svg().expect("a picture");
    }

    #[test]
    fn spread_is_drawn_and_has_room() {
        let mut chart = chart(false);
        chart.series[0].spread = vec![(90.0, 120.0), (150.0, 300.0)];
        assert_eq!(chart.whiskers(0).len(), 2);
        assert_eq!(chart.top(), 300.0);
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
