package main

import "sort"

//go:noinline
func leaf(n int) int {
	s := 0
	for i := 0; i < n; i++ {
		s += i * i % 7
	}
	return s
}

//go:noinline
func sorter(n int) int {
	v := make([]int, n)
	for i := range v {
		v[i] = i * 7919 % 10007
	}
	sort.Slice(v, func(a, b int) bool { return v[a] < v[b] })
	return v[0]
}

func main() {
	done := make(chan int)
	for k := 0; k < 2; k++ {
		go func() {
			s := 0
			for i := 0; i < 60; i++ {
				s += leaf(1000000) + sorter(5000)
			}
			done <- s
		}()
	}
	println(<-done + <-done)
}
