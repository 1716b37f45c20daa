import { DuckDBInstance } from '@duckdb/node-api';

/** A DuckDB in memory, which reads files as a stranger to Muster does. */
export interface Duck {
  rows(sql: string): Promise<unknown[][]>;
  close(): void;
}

export async function openDuck(): Promise<Duck> {
  const instance = await DuckDBInstance.create(':memory:');
  return {
    async rows(sql) {
      const connection = await instance.connect();
      try {
        return (await connection.runAndReadAll(sql)).getRowsJson();
      } finally {
        connection.closeSync();
      }
    },
    close: () => instance.closeSync(),
  };
}
