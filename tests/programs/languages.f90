! What C lacks: arrays, procedures with a frame of another one, input and output, finalizers,
! common blocks, computed gotos.
module shapes
  implicit none
  integer :: cx, cy
  common /blk/ cx, cy
  type, abstract :: shape
  contains
    procedure(area_i), deferred :: area
  end type
  abstract interface
    function area_i(this) result(r)
      import shape
      class(shape), intent(in) :: this
      real(8) :: r
    end function
  end interface
  type, extends(shape) :: sq
    real(8) :: s = 2
  contains
    procedure :: area => sq_area
    final :: fin
  end type
  integer :: total = 0
contains
  function sq_area(this) result(r)
    class(sq), intent(in) :: this
    real(8) :: r
    r = this%s**2
  end function
  subroutine fin(this)
    type(sq), intent(inout) :: this
    total = total + 1
  end subroutine
  recursive function fact(n) result(r)
    integer(8), intent(in) :: n
    integer(8) :: r
    if (n < 2) then; r = 1; else; r = n*fact(n-1); end if
  end function
  subroutine apply(f, x)
    interface
      function f(a)
        real(8), intent(in) :: a
        real(8) :: f
      end function
    end interface
    real(8), intent(inout) :: x(:)
    integer :: i
    do i = 1, size(x); x(i) = f(x(i)); end do
  end subroutine
end module
program p
  use shapes
  implicit none
  real(8), allocatable :: a(:,:), b(:,:), v(:)
  complex(8) :: z
  character(len=20) :: str
  character(len=:), allocatable :: dyn
  class(shape), allocatable :: s
  integer :: i, j, ios
  real(8) :: k
  allocate(a(5,5), b(5,5), v(5))
  forall (i=1:5, j=1:5) a(i,j) = i*10 + j
  b = transpose(a); a = matmul(a, b)
  print '(5f10.1)', a
  print *, sum(a), maxval(a), minloc(a), count(a > 1000)
  v = a(2,:); k = 3; call apply(tw, v); print *, v(1:5:2)
  z = (1d0, 2d0); print *, z*z, abs(z), exp(z)
  print *, fact(20_8)
  allocate(sq :: s); print *, s%area(); deallocate(s); print *, total
  cx = 5; cy = 6; call oldstyle(i); print *, i
  write(str, '(i5.3,a,es10.2)') 42, 'x', 1.5d-7; print *, trim(str)
  dyn = 'abc'//repeat('z', 5); print *, dyn, len(dyn), index(dyn, 'zz')
  str='7 8 bad'; read(str, *, iostat=ios) i, j; print *, i, j
  read(str(7:8), *, iostat=ios) i; print *, ios /= 0
  open(10, status='scratch'); write(10, *) (i*i, i=1,5); rewind(10); read(10,*) i, j; print *, i, j; close(10)
  select case (j); case (1:3); print *, 'low'; case (4); print *, 'four'; case default; print *, 'x'; end select
  where (a > 2000) a = -a
  print *, sum(a), any(a < 0), pack(a(1,:), a(1,:) < 0)
  stop 3
contains
  function tw(x)
    real(8), intent(in) :: x
    real(8) :: tw
    tw = x*k
  end function
end program
subroutine oldstyle(i)
  integer i
  common /blk/ ix, iy
  i = ix*10 + iy
  goto (10, 20, 30), iy-4
10 i = i + 1
  return
20 i = i + 200
  return
30 i = 0
end subroutine
