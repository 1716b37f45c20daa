import { waitFor } from '../process/wait-for.js';
import type { ChaosWorld } from './chaos-world.js';

/** A trigger in place of the disk, where no small one can be mounted: PostgreSQL refuses every write with the SQLSTATE of a full disk. */
const REFUSE_WRITES = `
  CREATE FUNCTION public.refuse_write() RETURNS trigger LANGUAGE plpgsql AS $$
  BEGIN
    RAISE EXCEPTION 'could not extend file: No space left on device' USING ERRCODE = 'disk_full';
  END $$;
  DO $$
  DECLARE place regclass;
  BEGIN
    FOR place IN SELECT format('%I.%I', schemaname, tablename) FROM pg_tables WHERE schemaname IN ('muster', 'mirror') LOOP
      EXECUTE format('CREATE TRIGGER refuse_write BEFORE INSERT OR UPDATE ON %s EXECUTE FUNCTION public.refuse_write()', place);
    END LOOP;
  END $$;`;

/**
 * Fills the disk of PostgreSQL until it can write nothing more, and makes room after a while. A server that has given up by then, for it could not
 * write its log, is started again.
 */
export async function fillDatabaseDisk(world: ChaosWorld): Promise<void> {
  const { disk, postgres, deployment } = world;
  if (!disk) {
    await world.query(REFUSE_WRITES);
    await waitFor(async () => (await deployment.call('POST', '/api/syncs', {})).status === 503, {
      what: 'a write to be refused',
    });
    await world.pause();
    await world.query('DROP FUNCTION public.refuse_write CASCADE');
    return;
  }
  disk.fill();
  await world.unready();
  await world.pause();
  disk.makeRoom();
  if (await postgres.answers()) return;
  await postgres.stop('immediate');
  await postgres.start();
}
