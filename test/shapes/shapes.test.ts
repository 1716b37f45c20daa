import { afterAll, describe, expect, test } from 'vitest';
import { HR_SHAPES } from './hr-shapes.js';
import { staffs } from './people.js';
import { type ShapeWorld, shapeWorld } from './shape-world.js';
import { makeLate, passThirtyNights, wrongAnswers } from './thirty-nights.js';

// Lists as eleven HR systems publish them, over thirty nights in which they change as such lists do.

const STAFFS = staffs(Number(process.env['SHAPES_USUAL'] ?? 300), Number(process.env['SHAPES_LARGE'] ?? 2_000));
/** Its service is reached over HTTP. */
const OVER_SOCKETS = 'deel_people';

describe.each(HR_SHAPES)('$name', (shape) => {
  let world: ShapeWorld | undefined;
  afterAll(() => world?.close());

  test('keeps every column and every value', async () => {
    world = await shapeWorld(shape, STAFFS, { sockets: shape.name === OVER_SOCKETS });
    await expect(passThirtyNights(world, shape, STAFFS)).resolves.toBeUndefined();
  });

  test('answers ten questions in one query each', async () => {
    await makeLate(world!, STAFFS);
    expect(await wrongAnswers(world!, shape, STAFFS)).toEqual([]);
  });
});
