interface Claim {
  readonly worker: string;
  readonly wanted: number;
  readonly held: number;
}

/**
 * This worker's share of `total` concurrent requests. Each worker gets what it wants, up to an equal share; a remainder that cannot be divided
 * rotates with `turn`. The share never exceeds what the others do not hold: they release their surplus once they see it.
 */
export function divideShare(total: number, own: Omit<Claim, 'held'>, others: readonly Claim[], turn: number): number {
  const wanted = new Map([own, ...others].map((claim) => [claim.worker, claim.wanted]));
  const names = [...wanted.keys()].filter((worker) => wanted.get(worker)! > 0).toSorted();
  const shares = new Map(names.map((worker) => [worker, 0]));
  let left = total;
  for (;;) {
    const hungry = names.filter((worker) => shares.get(worker)! < wanted.get(worker)!);
    if (hungry.length === 0 || left === 0) break;
    const each = Math.floor(left / hungry.length);
    const first = turn % hungry.length;
    const served = each > 0 ? hungry : [...hungry.slice(first), ...hungry.slice(0, first)].slice(0, left);
    for (const worker of served) {
      const more = Math.min(Math.max(1, each), wanted.get(worker)! - shares.get(worker)!);
      shares.set(worker, shares.get(worker)! + more);
      left -= more;
    }
  }
  const free = total - others.reduce((sum, { held }) => sum + held, 0);
  return Math.max(0, Math.min(shares.get(own.worker) ?? 0, free));
}
