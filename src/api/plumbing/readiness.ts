import { isMusterError } from '../../core/errors.js';

/** A part that takes longer to respond counts as missing. */
const CHECK_TIMEOUT_MS = 5_000;

/** A part of Muster; `check` throws when it is missing. */
export interface ReadinessCheck {
  readonly name: string;
  check(): Promise<unknown>;
  /** The process is ready even if this part is missing; the response says that it is. */
  readonly isOptional?: true;
}

export interface Readiness {
  readonly ready: boolean;
  readonly parts: Readonly<Record<string, { readonly ready: boolean; readonly problem?: string }>>;
}

/** Checks every part. Never throws. */
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
