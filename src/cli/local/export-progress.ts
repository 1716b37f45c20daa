import type { WriteStream } from 'node:tty';

const CELLS = 24;
const REDRAW_MS = 100;

/** One line of a terminal, drawn anew as the export goes on. It has no data in it but counts. */
export class ProgressBar {
  readonly #terminal: WriteStream;
  readonly #what: string;
  readonly #startedAt = performance.now();
  #drawnAt = 0;

  constructor(terminal: WriteStream, what: string) {
    this.#terminal = terminal;
    this.#what = what;
  }

  show({ rows, total }: { readonly rows: number; readonly total: number | undefined }): void {
    const now = performance.now();
    if (now - this.#drawnAt < REDRAW_MS) return;
    this.#drawnAt = now;
    const pace = Math.round((rows * 1000) / (now - this.#startedAt));
    const counts = `${rows.toLocaleString('en')} rows, ${pace.toLocaleString('en')} a second`;
    this.#terminal.clearLine(0);
    this.#terminal.cursorTo(0);
    this.#terminal.write(`${this.#what}  ${total ? `${bar(Math.min(1, rows / total))}  ` : ''}${counts}`);
  }

  /** Takes the line away. */
  end(): void {
    this.#terminal.clearLine(0);
    this.#terminal.cursorTo(0);
  }
}

function bar(part: number): string {
  const full = Math.floor(part * CELLS);
  return `${'█'.repeat(full)}${'░'.repeat(CELLS - full)} ${Math.floor(part * 100)} %`;
}
