export interface Series {
  readonly name: string;
  readonly values: number[];
}

const WIDTH = 880;
const PLOT = { left: 60, width: 790, height: 90, pitch: 140 };

/** One plot below the other, each from 0 to a little more than its largest value. */
export function soakPicture(title: string, series: readonly Series[]): string {
  const height = 60 + series.length * PLOT.pitch;
  const plots = series.map(({ name, values }, n) => {
    const top = 80 + n * PLOT.pitch;
    const most = Math.max(...values) * 1.15 || 1;
    const x = (at: number) => (PLOT.left + (at / Math.max(1, values.length - 1)) * PLOT.width).toFixed(1);
    const y = (value: number) => (top + PLOT.height - (value / most) * PLOT.height).toFixed(1);
    const last = values.at(-1)!;
    return [
      `<text x="${PLOT.left}" y="${top - 10}" font-weight="600">${name}</text>`,
      `<line x1="${PLOT.left}" x2="${PLOT.left + PLOT.width}" y1="${top + PLOT.height}" y2="${top + PLOT.height}" stroke="#1f3a4d" stroke-opacity=".3"/>`,
      `<polyline points="${values.map((value, at) => `${x(at)},${y(value)}`).join(' ')}" fill="none" stroke="#3d8b78" stroke-width="2"/>`,
      `<text x="${PLOT.left - 8}" y="${top + PLOT.height}" text-anchor="end">0</text>`,
      `<text x="${PLOT.left + PLOT.width}" y="${Number(y(last)) - 8}" text-anchor="end" font-weight="600">${last.toLocaleString('en-US', { maximumFractionDigits: 1 })}</text>`,
    ].join('');
  });
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" font-family="ui-sans-serif, system-ui, Helvetica, Arial, sans-serif" font-size="13" fill="#1f3a4d"><rect width="${WIDTH}" height="${height}" rx="14" fill="#fbfaf7"/><text x="${PLOT.left}" y="34" font-weight="600" font-size="15">${title}</text>${plots.join('')}</svg>\n`;
}
