import type { Check } from '../../src/doctor/check.js';
import { type Examined, examine } from '../../src/doctor/examine.js';

/** What the checks find, all of it. */
export async function findings(...checks: readonly Check[]): Promise<Examined[]> {
  const all: Examined[] = [];
  for await (const finding of examine(checks)) all.push(finding);
  return all;
}

/** The same as lines: the level, then what was found. */
export async function found(...checks: readonly Check[]): Promise<string[]> {
  return (await findings(...checks)).map(({ level, found: text }) => `${level}: ${text}`);
}
