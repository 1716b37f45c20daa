import { translateDatabaseError } from '../db/sql-state.js';

/** The same outcome, but a database that is away is `database_unavailable`. */
export async function translated<T>(work: PromiseLike<T>): Promise<T> {
  try {
    return await work;
  } catch (error) {
    throw translateDatabaseError(error);
  }
}
