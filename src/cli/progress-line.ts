import type { WriteStream } from 'node:tty';
import { columnsOf, cut, USUAL_WIDTH } from './terminal.js';

const MOST_CELLS = 24;
const FEWEST_CELLS = 8;
const REDRAW_MS = 100;

/** One line of a terminal that shows how far a command is. Prints nothing where the stream is no terminal. */
export class ProgressLine {
  readonly #stream: Pick<WriteStream, 'isTTY' | 'columns' | 'write'>;
  readonly #subject: string;
  #drawnAt = -Infinity;
  /** The columns of the line on the screen. */
  #shown = 0;

  constructor(subject: string, stream: Pick<WriteStream, 'isTTY' | 'columns' | 'write'> = process.stdout) {
    this.#subject = subject;
    this.#stream = stream;
  }

  /** Shows these texts, and a bar where the share of the work that is done is known. Calls that follow too quickly draw nothing. */
  show(texts: readonly string[], share?: number): void {
    const now = performance.now();
    if (now - this.#drawnAt < REDRAW_MS) return;
    this.#drawnAt = now;
    this.#draw(lineOf(this.#subject, texts, share, (this.#stream.columns || USUAL_WIDTH) - 1));
  }

  /** Takes the line away. */
  clear(): void {
    this.#draw('');
  }

  #draw(line: string): void {
    if (!this.#stream.isTTY) return;
    // A terminal that was made narrower since has broken the line, so its first rows are above the cursor.
    const above = Math.ceil(this.#shown / (this.#stream.columns || USUAL_WIDTH)) - 1;
    this.#stream.write(`${above > 0 ? `\x1b[${above}A` : ''}\r\x1b[${above > 0 ? 'J' : '2K'}${line}`);
    this.#shown = columnsOf(line);
  }
}

/**
 * A line that is longer than the terminal would wrap, and its first part would stay on the screen. The bar gives way before the texts, and the last
 * texts before the first; none is shown in part.
 */
function lineOf(subject: string, texts: readonly string[], share: number | undefined, width: number): string {
  const percent = share === undefined ? [] : [`${Math.floor(share * 100)} %`];
  const kept = [...texts];
  const rest = () => [subject, ...percent, ...kept].join('  ');
  while (kept.length > 0 && columnsOf(rest()) > width) kept.pop();
  const cells = Math.min(MOST_CELLS, width - columnsOf(rest()) - 1);
  const full = Math.floor((share ?? 0) * cells);
  const bar = percent.map((text) => (cells < FEWEST_CELLS ? text : `${'█'.repeat(full)}${'░'.repeat(cells - full)} ${text}`));
  return cut([subject, ...bar, ...kept].join('  '), width);
}
