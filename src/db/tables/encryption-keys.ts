// muster.encryption_keys: fingerprints of the keys of MUSTER_ENCRYPTION_KEYS, by their ids. A row is written when a process first starts with the key, and goes
// when `muster rotate-keys` has left nothing that needs it.
import type { Database } from '../connection/database.js';

/** Stores the fingerprints of new ids, and returns the fingerprints of all ids. Concurrent calls agree: the first fingerprint of an id stays. */
export async function keepFingerprints(
  { prisma }: Pick<Database, 'prisma'>,
  fingerprints: ReadonlyMap<string, string>,
): Promise<ReadonlyMap<string, string>> {
  const data = [...fingerprints].map(([id, fingerprint]) => ({ id, fingerprint }));
  await prisma.encryptionKey.createMany({ data, skipDuplicates: true });
  return findFingerprints({ prisma }, [...fingerprints.keys()]);
}

export async function findFingerprints(
  { prisma }: Pick<Database, 'prisma'>,
  ids: readonly string[],
): Promise<ReadonlyMap<string, string>> {
  const rows = await prisma.encryptionKey.findMany({ where: { id: { in: [...ids] } } });
  return new Map(rows.map(({ id, fingerprint }) => [id, fingerprint]));
}

/** Forgets all keys but this one: no ciphertext needs another one, and the ids of the others are free. */
export async function forgetOtherFingerprints({ prisma }: Pick<Database, 'prisma'>, id: string): Promise<void> {
  await prisma.encryptionKey.deleteMany({ where: { id: { not: id } } });
}
