import { styleText } from 'node:util';
import stringWidth from 'string-width';

type Stream = Pick<NodeJS.WriteStream, 'isTTY'> & { readonly columns?: number };

/** The columns of a terminal that does not tell its width. */
export const USUAL_WIDTH = 80;

/** How many columns a line may take: COLUMNS where it is set, else the width of the terminal. Undefined, as into a pipe: as many as it needs. */
export function widthOf(stream: Stream = process.stdout, env: NodeJS.ProcessEnv = process.env): number | undefined {
  const asked = /^[1-9]\d{0,4}$/.test(env.COLUMNS ?? '') ? Number(env.COLUMNS) : undefined;
  return asked ?? (stream.isTTY ? stream.columns || USUAL_WIDTH : undefined);
}

/** Whether to write colours: FORCE_COLOR and NO_COLOR decide where they are set, else whether the stream is a terminal. */
export function hasColour(stream: Stream = process.stdout, env: NodeJS.ProcessEnv = process.env): boolean {
  if (env.FORCE_COLOR) return env.FORCE_COLOR !== '0' && env.FORCE_COLOR !== 'false';
  return !env.NO_COLOR && env.TERM !== 'dumb' && stream.isTTY;
}

type Style = Parameters<typeof styleText>[0];

export function styled(style: Style, text: string): string {
  return styleText(style, text);
}

/**
 * The text on one line, without characters that move the cursor, change colours or reverse the direction of what follows: names and messages of
 * the service must not write anywhere else on the terminal.
 */
export function plain(text: string): string {
  return text.replaceAll(/[\p{Cc}\u2028\u2029]+/gu, ' ').replaceAll(/[\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu, '');
}

/** The columns that a text takes: wide characters take two, combining marks none. */
export function columnsOf(text: string): number {
  return stringWidth(text);
}

const GRAPHEMES = new Intl.Segmenter(undefined, { granularity: 'grapheme' });

/** The text in at most `width` columns; an ellipsis takes the place of what is cut off. */
export function cut(text: string, width: number): string {
  if (columnsOf(text) <= width) return text;
  let kept = '';
  let left = width - 1;
  for (const { segment } of GRAPHEMES.segment(text)) {
    left -= columnsOf(segment);
    if (left < 0) break;
    kept += segment;
  }
  return `${kept.trimEnd()}…`;
}

/** Breaks a text between its words into lines of at most `width` columns. A longer word, such as an address, stays whole. */
export function wrap(text: string, width: number): string[] {
  const lines: string[] = [];
  let line = '';
  for (const word of text.split(' ')) {
    const longer = line === '' ? word : `${line} ${word}`;
    if (line !== '' && columnsOf(longer) > width) {
      lines.push(line);
      line = word;
    } else line = longer;
  }
  return [...lines, line];
}

/** Names with their texts, one below the other; a text that is too long goes on below itself. */
export function pairLines(pairs: readonly (readonly [name: string, text: string])[], width = Infinity): string[] {
  const indent = Math.max(...pairs.map(([name]) => columnsOf(name))) + 2;
  return pairs.flatMap(([name, text]) => {
    const heading = name + ' '.repeat(indent - columnsOf(name));
    return wrap(text, Math.max(width - indent, 20)).map((line, n) => ((n === 0 ? heading : ' '.repeat(indent)) + line).trimEnd());
  });
}
