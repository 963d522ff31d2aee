"""Property tests: the laws that grammars, factors and plans keep, over random inputs."""
