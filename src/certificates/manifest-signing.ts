import type { Database } from '../db/connection/database.js';
import { sqlState } from '../db/connection/sql-state.js';
import { inTransaction } from '../db/connection/transaction.js';
import { addSigningKey } from '../db/tables/certificates.js';
import type { Signer } from './certificate.js';

/**
 * Signs manifests of exports. The public key is stored before the first manifest is published. On a standby, or with a role that only reads, it cannot
 * be stored: then it is published once a worker with the same key has signed.
 */
export function manifestSigning(db: Database, signer: Signer): (manifest: string) => Promise<string> {
  return async (manifest) => {
    await inTransaction(db, (tx) => addSigningKey(tx, signer.publicKey)).catch((error: unknown) => {
      const state = sqlState(error);
      if (state !== '25006' && state !== '42501') throw error; // read_only_sql_transaction, insufficient_privilege
    });
    return signer.signManifest(manifest);
  };
}
