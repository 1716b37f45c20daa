import { readFileSync } from 'node:fs';

/** A row of the table of what a state allows; the first word of each cell counts. */
interface Allowance {
  readonly status: string;
  readonly askedForSync: string;
  readonly nightlySync: string;
  readonly refreshedAhead: string;
  readonly tokenOnDemand: string;
  readonly told: string;
}

interface Transition {
  readonly from: string;
  readonly event: string;
  readonly to: string;
}

/** The tables of the section "Connection" of docs/states.md. */
export function readStates(): { allowances: Allowance[]; transitions: Transition[] } {
  const text = readFileSync(new URL('../../docs/states.md', import.meta.url), 'utf8');
  const section = text.split(/^## /m).find((part) => part.startsWith('Connection')) ?? '';
  const rows = section.split('\n').map((line) =>
    line
      .split('|')
      .slice(1, -1)
      .map((cell) => /^[\w`]+/.exec(cell.trim())?.[0].replaceAll('`', '') ?? ''),
  );
  /** The cells of the table whose first heading this is. */
  const table = (heading: string) => {
    const from = rows.findIndex(([first]) => first === heading) + 2;
    const length = rows.slice(from).findIndex((cells) => cells.length === 0);
    return rows.slice(from, from + length);
  };
  return {
    allowances: table('status').map(([status, askedForSync, nightlySync, refreshedAhead, tokenOnDemand, told]) => ({
      status: status!,
      askedForSync: askedForSync!,
      nightlySync: nightlySync!,
      refreshedAhead: refreshedAhead!,
      tokenOnDemand: tokenOnDemand!,
      told: told!,
    })),
    transitions: table('from').map(([from, event, to]) => ({ from: from!, event: event!, to: to! })),
  };
}
