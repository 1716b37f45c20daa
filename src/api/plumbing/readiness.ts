import { isMusterError } from '../../core/errors.js';

/** Work cannot rely on a part that takes longer to answer. */
const CHECK_TIMEOUT_MS = 5_000;

/** A part of Muster; `check` throws when it is missing. */
export interface ReadinessCheck {
  readonly name: string;
  check(): Promise<unknown>;
  /** The process can answer without it: where it is missing, that is said, and the process is ready all the same. */
  readonly isOptional?: true;
}

export interface Readiness {
  readonly ready: boolean;
  readonly parts: Readonly<Record<string, { readonly ready: boolean; readonly problem?: string }>>;
}

/** Asks every part. Never throws. */
export async function readinessOf(checks: readonly ReadinessCheck[]): Promise<Readiness> {
  const asked = await Promise.all(checks.map(async (part) => ({ part, state: await probe(part) })));
  return {
    ready: asked.every(({ part, state }) => state.ready || part.isOptional),
    parts: Object.fromEntries(asked.map(({ part, state }) => [part.name, state])),
  };
}

async function probe(part: ReadinessCheck): Promise<Readiness['parts'][string]> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<'late'>((resolve) => {
    timer = setTimeout(() => resolve('late'), CHECK_TIMEOUT_MS);
  });
  try {
    if ((await Promise.race([part.check(), late])) === 'late') return { ready: false, problem: 'does not answer' };
    return { ready: true };
  } catch (error) {
    return { ready: false, problem: isMusterError(error) ? error.message : 'failed' };
  } finally {
    clearTimeout(timer);
  }
}
