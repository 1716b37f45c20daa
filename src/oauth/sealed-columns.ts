import type { TokenField } from './cipher.js';

/** Where ciphertexts stand. */
export const SEALED_COLUMNS: readonly { table: 'tokens' | 'quarantined_tokens'; field: TokenField }[] = [
  { table: 'tokens', field: 'access_token' },
  { table: 'tokens', field: 'refresh_token' },
  { table: 'quarantined_tokens', field: 'refresh_token' },
];
