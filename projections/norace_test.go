//go:build !race

package projections_test

const raced = false
