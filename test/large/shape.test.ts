import { afterAll, expect, test } from 'vitest';
import { HR_SHAPES } from '../shapes/hr-shapes.js';
import { staffs } from '../shapes/people.js';
import { type ShapeWorld, shapeWorld } from '../shapes/shape-world.js';
import { makeLate, passThirtyNights, wrongAnswers } from '../shapes/thirty-nights.js';

// One of the eleven lists of test/shapes, with arrays within arrays, texts for numbers and little declared; all of them are tried before a release.

const shape = HR_SHAPES.find(({ name }) => name === 'gusto_employees')!;
const STAFFS = staffs(60, 140);

let world: ShapeWorld | undefined;
afterAll(() => world?.close());

test('a list of thirty nights keeps every column and every value, and answers ten questions in one query each', async () => {
  world = await shapeWorld(shape, STAFFS);
  await passThirtyNights(world, shape, STAFFS);
  await makeLate(world, STAFFS);
  expect(await wrongAnswers(world, shape, STAFFS)).toEqual([]);
});
