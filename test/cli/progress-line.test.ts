import { expect, test } from 'vitest';
import { ProgressLine } from '../../src/cli/progress-line.js';

/** Takes away the line of a terminal. */
const CLEARED = '\r\x1b[2K';
const TEXTS = ['1 of 2 companies', '12,345 of at least 99,999 records', '1,234/s'];

function draw(columns: number, isTTY = true): string {
  let drawn = '';
  const line = new ProgressLine('Mirroring', { isTTY, columns, write: (text: unknown) => Boolean((drawn += String(text))) });
  line.show(TEXTS, 0.5);
  line.clear();
  return drawn;
}

test('a line has a bar, never wraps, and is taken away', () => {
  expect(draw(120)).toBe(`${CLEARED}Mirroring  ${'█'.repeat(12)}${'░'.repeat(12)} 50 %  ${TEXTS.join('  ')}${CLEARED}`);
  for (const columns of [100, 80, 40, 10]) {
    const [before, line = '', after] = draw(columns).split(CLEARED);
    expect([before, after]).toEqual(['', '']);
    expect(line.length).toBeGreaterThan(0);
    expect(line.length).toBeLessThan(columns);
  }
});

test('no text is shown in part', () => {
  for (let columns = 20; columns <= 120; columns++) {
    const [, line = ''] = draw(columns).split(CLEARED);
    const shown = line.split('  ').filter((text) => TEXTS.some((each) => each.startsWith(text)));
    expect(shown).toEqual(TEXTS.slice(0, shown.length));
    expect(line.replaceAll(/[█░]/g, '')).toMatch(/(%|companies|records|\/s)$/);
  }
});

test('a line that a narrower terminal has broken is taken away whole', () => {
  let drawn = '';
  const stream = { isTTY: true, columns: 80, write: (text: unknown) => Boolean((drawn += String(text))) };
  const line = new ProgressLine('Mirroring', stream);
  line.show(TEXTS, 0.5);
  stream.columns = 40;
  drawn = '';
  line.clear();
  expect(drawn).toBe('\x1b[1A\r\x1b[J');
});

test('where there is little room the bar gives way to the texts', () => {
  expect(draw(80)).toContain(`Mirroring  50 %  ${TEXTS.join('  ')}`);
});

test('a terminal that does not tell its width has 80 columns', () => {
  expect(draw(0)).toBe(draw(80));
});

test('nothing is written where there is no terminal', () => {
  expect(draw(80, false)).toBe('');
});
