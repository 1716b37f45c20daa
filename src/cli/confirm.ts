import { createInterface } from 'node:readline/promises';

/** What the help of a command that asks says of it. */
export const ASKS = '\nOn a terminal it asks first; without one, as in a script, nothing is asked.';

/** Asks on the terminal; true without asking where there is none, or with --yes. */
export async function confirmed(question: string, { yes = false }: { readonly yes?: boolean | undefined }): Promise<boolean> {
  if (yes || !process.stdin.isTTY) return true;
  const terminal = createInterface({ input: process.stdin, output: process.stderr });
  try {
    return /^y(es)?$/i.test((await terminal.question(`${question} [y/N] `)).trim());
  } finally {
    terminal.close();
  }
}
